// Where a GPU cannot be used, what is said names the reason and the remedy; judged from made-up facts.
#include "host/gpu_requirements.hpp"
#include "trace_catch.hpp"

using namespace slipstream;
using namespace slipstream::host;

namespace {

gpu_facts h200()
{
    gpu_facts f;
    f.count = 1;
    f.driver_cuda = f.build_cuda = 13000;
    f.name = "NVIDIA H200";
    f.major = 9;
    f.sms = 132;
    return f;
}

void says(const std::string& text, std::initializer_list<const char*> parts)
{
    INFO(text);
    CHECK_FALSE(text.empty());
    CHECK(text.find('\n') == std::string::npos); // the command line prints one line
    for (const char* part : parts) CHECK(text.find(part) != std::string::npos);
}

} // namespace

TEST_CASE("a GPU that has everything is not refused", "[host][gpu_requirements]") { CHECK(gpu_problem(h200(), 0).empty()); }

TEST_CASE("no driver, no GPU and a driver too old are refused, each with its own remedy", "[host][gpu_requirements]")
{
    auto f = h200();
    f.answer = gpu_answer::no_driver;
    says(gpu_problem(f, 0), {"no NVIDIA driver", "580", "nvidia.com/drivers", "host device"});
    f.answer = gpu_answer::old_driver;
    f.driver_cuda = 12040;
    says(gpu_problem(f, 0), {"too old", "up to 12.4", "needs 13.0", "580", "host device"});
    f.answer = gpu_answer::no_device;
    says(gpu_problem(f, 0), {"no NVIDIA GPU found", "CUDA_VISIBLE_DEVICES", "host device"});
    f.answer = gpu_answer::good;
    f.count = 0;
    says(gpu_problem(f, 0), {"no NVIDIA GPU found"});
    f.answer = gpu_answer::other;
    f.said = "system not yet initialized";
    says(gpu_problem(f, 0), {"system not yet initialized", "host device"});
}

TEST_CASE("a GPU that is not there, does not answer, is too old or too small is refused by name", "[host][gpu_requirements]")
{
    auto f = h200();
    f.count = 2;
    says(gpu_problem(f, 2), {"no cuda:2", "2 GPU(s)", "cuda:1"});
    f.answers = false;
    says(gpu_problem(f, 1), {"cuda:1 does not answer", "new process"});
    f = h200();
    f.major = 7;
    f.minor = 5;
    says(gpu_problem(f, 0), {"NVIDIA H200", "7.5", "8.0"});
    f = h200();
    f.cooperative_launch = false;
    says(gpu_problem(f, 0), {"cooperative launch", "host device"});
    f = h200();
    f.sms = 1;
    says(gpu_problem(f, 0), {"1 SM", "needs two", "larger share"});
}

TEST_CASE("workers that are not resident together, beside the control block, are refused before they are launched",
          "[host][gpu_requirements]")
{
    const launch_facts good{"NVIDIA H200", 132, 131, 1, 1, 256, 100'000};
    CHECK(launch_problem(good).empty());
    launch_facts f = good;
    f.fit_per_sm = 0;
    says(launch_problem(f), {"only 0 of them", "100000 B", "lower workers_per_sm"});
    f = good;
    f.sms = 131; // of a partition: none is left that schedules
    says(launch_problem(f), {"too small", "131 workers", "130 fit", "sms_left_free"});
    f = good;
    f.workers = f.workers_per_sm = 2;
    f.fit_per_sm = 2;
    f.sms = 2;
    CHECK(launch_problem(f).empty());
    f.sms = 1;
    says(launch_problem(f), {"too small", "0 fit"});
    f.sms = 0;
    says(launch_problem(f), {"too small", "0 fit"});
    f = good;
    f.workers = 0;
    says(launch_problem(f), {"too small"});
}

TEST_CASE("launches that wait for their kernel are refused, since two kernels have to run at once", "[host][gpu_requirements]")
{
    for (const char* value : {static_cast<const char*>(nullptr), "", "0"}) CHECK(launch_blocking_problem(value).empty());
    says(launch_blocking_problem("1"), {"CUDA_LAUNCH_BLOCKING = 1", "unset it", "host device"});
}

TEST_CASE("memory that finds no room names the sizes and the settings to lower", "[host][gpu_requirements]")
{
    says(memory_problem("cudaMalloc", u64{200} << 30, u64{1} << 30, u64{139} << 30),
         {"cudaMalloc of 204800 MiB", "1024 MiB of the GPU's 142336 MiB", "memory_bytes", "nvidia-smi"});
    says(memory_problem("cudaHostAlloc", u64{64} << 30, 0, 0), {"cudaHostAlloc of 65536 MiB", "staging_bytes", "ulimit -l"});
}

TEST_CASE("errors that take the context with them say that a new process is needed, others do not", "[host][gpu_requirements]")
{
    for (const int code : {700, 715, 716, 719, 702, 214}) says(cuda_remedy(code), {"context is lost", "new process"});
    says(cuda_remedy(720), {"sms_left_free"});
    says(cuda_remedy(46), {"another process"});
    says(cuda_remedy(35), {"580"});
    CHECK(cuda_remedy(1).empty()); // cudaErrorInvalidValue: ours
    CHECK(cuda_remedy(2).empty());
}
