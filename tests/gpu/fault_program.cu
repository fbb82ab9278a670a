// One fault a run, each in a process of its own since most of them take the CUDA context along: fault_program FAULT. Says line by
// line what it saw; faults.py judges. Ends with 0 when it got to its end, with 77 where there is no GPU.
#include "host/runtime_core.hpp"
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <slipstream/runtime.hpp>
#include <thread>

using namespace slipstream;
using namespace std::chrono_literals;

namespace {

enum class fault : u32 { illegal, trap, misaligned };

/// Ends the context.
struct faulty_task {
    static constexpr const char* name = "faulty";
    out<u64> x;
    u32 kind;
    template <class Block> SLIPSTREAM_BODY void operator()(Block& block) const
    {
#if defined(__CUDA_ARCH__)
        if (block.rank() != 0) return;
        switch (static_cast<fault>(kind)) {
        case fault::illegal: *reinterpret_cast<u64*>(u64{64}) = 1; break;
        case fault::trap: asm volatile("trap;"); break;
        case fault::misaligned: *reinterpret_cast<u64*>(reinterpret_cast<u64>(x.data()) + 1) = 1; break;
        }
#else
        (void)block;
#endif
    }
};

/// Fails, having promised that it never does.
struct unfaithful_task {
    static constexpr const char* name = "unfaithful";
    out<u64> x;
    u32 code;
    template <class Block> SLIPSTREAM_BODY void operator()(Block& block) const noexcept
    {
        if (block.rank() == 0) block.fail(code);
    }
};

/// Runs for so many nanoseconds; 0: for ever.
struct spin_task {
    static constexpr const char* name = "spin";
    u64 ns;
    template <class Block> SLIPSTREAM_BODY void operator()(Block& block) const
    {
#if defined(__CUDA_ARCH__)
        (void)block;
        u64 start, now;
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
        do {
            asm volatile("nanosleep.u32 1000;");
            asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
        } while (ns == 0 || now - start < ns);
#else
        (void)block;
#endif
    }
};

enum class mistake : u32 { none, beyond, unwritten, race, divergence };

/// What the sanitizers are for: tests/gpu/sanitize wants each of them to find its own.
struct mistaken_task {
    static constexpr const char* name = "mistaken";
    u64 words; ///< one for each thread of the block, and one
    u32 kind;
    template <class Block> SLIPSTREAM_BODY void operator()(Block& block) const
    {
#if defined(__CUDA_ARCH__)
        auto* const w = reinterpret_cast<u32*>(words);
        const u32 me = block.rank(), other = (me + 32) % block.size();
        __shared__ u32 seen[256];
        switch (static_cast<mistake>(kind)) {
        case mistake::none: w[me] = me; break;
        case mistake::beyond: w[me + 2] = 1; break;
        case mistake::unwritten: w[me] = w[me] == 1 ? 2 : 3; break;
        case mistake::race: // no barrier between what one warp writes and another reads
            seen[me] = me;
            w[me] = seen[other];
            break;
        case mistake::divergence: // a mask without the lane that names it
            if (me < 16) __syncwarp(0xffff0000u);
            break;
        }
#else
        (void)block;
#endif
    }
};

struct step_task {
    static constexpr const char* name = "step";
    inout<u64> x;
    template <class Block> SLIPSTREAM_BODY void operator()(Block& block) const
    {
        for (u64 i = block.global_rank(); i < x.size(); i += block.global_size()) x[i] = x[i] * 3 + 1;
    }
};

/// One worker an SM is enough here, and half as long to compile.
class fault_engine : public runtime_base {
public:
    using list = task_list<faulty_task, unfaithful_task, spin_task, mistaken_task, step_task, copy_task, fill_task, marker_task>;
    explicit fault_engine(const config& c)
        : runtime_base(c, detail::image_for_workers<detail::platforms, 1, faulty_task, unfaithful_task, spin_task, mistaken_task,
                                                    step_task, copy_task, fill_task, marker_task>())
    {
    }
    template <class Task> task_handle submit(const Task& task, const submit_options& o = {})
    {
        return submit_as(list::index_of<Task>(), task, o);
    }
};

config gpu()
{
    config c;
    c.device = "cuda";
    c.memory_bytes = 1u << 20;
    c.staging_bytes = 1u << 20;
    return c;
}

void say(const char* what, const std::string& text) { std::printf("%s: %s\n", what, text.c_str()), std::fflush(stdout); }

/// What `call` throws; "nothing" when it throws nothing.
template <class Call> std::string thrown(Call call)
{
    try {
        call();
    } catch (const config_error& e) {
        return std::string("config_error: ") + e.what();
    } catch (const device_error& e) {
        return std::string("device_error: ") + e.what();
    }
    return "nothing";
}

std::string health(const config& c)
{
    return thrown([&] {
        fault_engine rt(c);
        std::vector<u64> x(64, 1);
        buffer<u64> b(rt, x.size());
        b.upload(x);
        for (u32 i = 0; i < 1000; ++i) rt.submit(step_task{b});
        b.download(x);
        u64 want = 1;
        for (u32 i = 0; i < 1000; ++i) want = want * 3 + 1;
        for (const u64 v : x)
            if (v != want) throw device_error("a wrong result");
    });
}

config on_host()
{
    config c = gpu();
    c.device = "host";
    return c;
}

/// A task that breaks the context, made for a buffer, while another one runs on two workers.
template <class Make> void device_fault(Make make)
{
    auto rt = std::make_unique<fault_engine>(gpu());
    auto x = std::make_unique<buffer<u64>>(*rt, 8);
    const task_handle done = rt->submit(step_task{*x});
    (void)rt->wait(done);
    rt->submit(spin_task{0}, {.blocks = 2, .order = ordering::no_access, .name = "bystander"});
    for (;;) { // both of its blocks are seen to run
        const std::string text = rt->core().describe_workers();
        if (text.find("block 0 of spin 'bystander'") != std::string::npos
            && text.find("block 1 of spin 'bystander'") != std::string::npos)
            break;
        std::this_thread::sleep_for(1ms);
    }
    const task_handle culprit = rt->submit(make(*x), {.name = "culprit"});
    const std::string text = thrown([&] { (void)rt->wait(culprit); });
    say("wait", text);
    say("submission", std::to_string(culprit.ring) + ":" + std::to_string(culprit.position));
    say("submit says the same", thrown([&] { rt->submit(step_task{*x}); }) == text ? "yes" : "no");
    say("what was done before", rt->query(done).ok() ? "complete" : "not complete");
    x.reset();
    rt.reset();
    say("runtime", "destroyed");
    say("new runtime on the GPU", health(gpu()));
    say("new runtime on the host", health(on_host()));
}

void device_fault(fault kind)
{
    device_fault([=](const buffer<u64>& x) { return faulty_task{x, static_cast<u32>(kind)}; });
}

void broken_promise()
{
    device_fault([](const buffer<u64>& x) { return unfaithful_task{x, 7}; });
}

void endless()
{
    config c = gpu();
    c.stall_limit = 500ms;
    auto rt = std::make_unique<fault_engine>(c);
    const task_handle h = rt->submit(spin_task{0}, {.order = ordering::no_access, .name = "never"});
    const auto start = std::chrono::steady_clock::now();
    const auto state = rt->wait(h, start + 100ms).state;
    const auto took = std::chrono::steady_clock::now() - start;
    say("wait with a deadline", state == task_state::pending && took < 2s ? "pending in time" : "wrong");
    say("wait", thrown([&] { (void)rt->wait(h); }));
    rt.reset();
    say("runtime", "destroyed");
}

/// Nobody waits for it, and no limit holds while the runtime lives.
void abandoned()
{
    config c = gpu();
    c.exit_limit = 500ms;
    auto rt = std::make_unique<fault_engine>(c);
    const task_handle h = rt->submit(spin_task{0}, {.order = ordering::no_access, .name = "never"});
    const auto state = rt->wait(h, std::chrono::steady_clock::now() + 1s).state;
    say("while it lives", state == task_state::pending ? "pending" : "wrong");
    const auto start = std::chrono::steady_clock::now();
    rt.reset();
    const auto took = std::chrono::steady_clock::now() - start;
    say("runtime", took >= 450ms && took < 10s ? "destroyed in time" : "destroyed, but not in time");
}

void stall()
{
    config c = gpu();
    c.stall_limit = 400ms;
    // behind "slow" on its worker, a task would run whatever its leader sees: it is at hand, or was not read yet when "slow" ended
    c.chaining = false;
    fault_engine rt(c);
    buffer<u64> x(rt, 8);
    rt.submit(step_task{x});
    rt.wait_all();
    // It ends while the engine waits for the kernel to leave.
    rt.submit(spin_task{700'000'000}, {.accesses = writes(x.data(), 64), .name = "slow"});
    const task_handle second = rt.submit(step_task{x}, {.name = "second"});
    say("wait", thrown([&] { (void)rt.wait(second); }));
    say("new runtime on the GPU", health(gpu()));
}

/// Holds an SM for itself with each block.
__global__ void hold(u64 ns) { spin_task{ns}(ns); }

/// Other work has the SMs that the workers need.
void held()
{
    int shared = 0;
    cudaStream_t others = nullptr;
    config c = gpu();
    c.stall_limit = 700ms;
    fault_engine rt(c);
    buffer<u64> x(rt, 8);
    if (cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0) != cudaSuccess
        || cudaFuncSetAttribute(hold, cudaFuncAttributeMaxDynamicSharedMemorySize, shared) != cudaSuccess
        || cudaStreamCreateWithFlags(&others, cudaStreamNonBlocking) != cudaSuccess)
        throw device_error("no stream");
    hold<<<2, 32, shared, others>>>(1); // loaded now, while nothing is resident
    cudaStreamSynchronize(others);
    rt.submit(step_task{x});
    rt.wait_all();
    rt.pause();
    hold<<<2, 32, shared, others>>>(3'000'000'000);
    std::this_thread::sleep_for(5ms);
    rt.resume();
    rt.submit(step_task{x}, {.name = "held up"});
    say("wait", thrown([&] { rt.wait_all(); }));
    cudaStreamSynchronize(others);
    say("new runtime on the GPU", health(gpu()));
}

void busy()
{
    fault_engine rt(gpu());
    buffer<u64> x(rt, 1 << 10);
    std::vector<u64> zero(x.size());
    x.upload(zero);
    for (u32 i = 0;; ++i) {
        rt.submit(step_task{{x.data() + i % 1024, 1}});
        if (i % 64 == 0) rt.submit(spin_task{1'000'000}, {.order = ordering::no_access});
        if (i == 10'000) say("busy", "yes");
    }
}

/// One kernel, which ends by itself: sanitizers see it whole.
void make(mistake kind)
{
    config c = gpu();
    c.batch = true;
    c.stall_limit = 5s;
    u32* words = nullptr;
    if (cudaMalloc(&words, 257 * sizeof(u32)) != cudaSuccess) throw device_error("no memory");
    say("batch", thrown([&] {
            fault_engine rt(c);
            rt.submit(mistaken_task{reinterpret_cast<u64>(words), static_cast<u32>(kind)}, {.order = ordering::no_access});
            rt.run_batch();
        }));
}

void memory()
{
    config c = gpu();
    c.memory_bytes = u64{1} << 45;
    say("device memory", thrown([&] { fault_engine rt(c); }));
    c = gpu();
    c.staging_bytes = u64{1} << 45;
    say("pinned memory", thrown([&] { fault_engine rt(c); }));
    c = gpu();
    c.sms_left_free = 100'000;
    say("SMs", thrown([&] { fault_engine rt(c); }));
    c = gpu();
    c.device = "cuda:99";
    say("ordinal", thrown([&] { fault_engine rt(c); }));
    say("new runtime on the GPU", health(gpu()));
}

} // namespace

int main(int count, char** arguments)
{
    const std::string what = count == 2 ? arguments[1] : "";
    if (what == "problem") { // whatever is wrong with GPU 0, and whether the host device works
        say("new runtime on the GPU", health(gpu()));
        say("new runtime on the host", health(on_host()));
        return 0;
    }
    if (const std::string problem = host::cuda_problem(0); !problem.empty()) {
        std::printf("SKIPPED: %s\n", problem.c_str());
        return 77;
    }
    if (what == "illegal") device_fault(fault::illegal);
    else if (what == "trap") device_fault(fault::trap);
    else if (what == "misaligned") device_fault(fault::misaligned);
    else if (what == "broken_promise") broken_promise();
    else if (what == "endless") endless();
    else if (what == "abandoned") abandoned();
    else if (what == "stall") stall();
    else if (what == "held") held();
    else if (what == "busy") busy();
    else if (what == "memory") memory();
    else if (what == "sound") make(mistake::none);
    else if (what == "beyond") make(mistake::beyond);
    else if (what == "unwritten") make(mistake::unwritten);
    else if (what == "race") make(mistake::race);
    else if (what == "divergence") make(mistake::divergence);
    else if (what == "healthy") say("new runtime on the GPU", health(gpu()));
    else {
        std::fprintf(stderr, "fault_program: unknown fault '%s'\n", what.c_str());
        return 2;
    }
    say("end", "of main");
    return 0;
}
