// What happens when something goes wrong beneath the tasks: bodies that never end, engines that stand still, devices that are lost,
// memory that is not there. Each with what is said and what works afterwards; on the host device.
#include "api_tasks.hpp"
#include "device/host_platform.hpp"
#include "host/runtime_core.hpp"
#include "trace_catch.hpp"
#include "wrapped_backend.hpp"
#include <memory>
#include <mutex>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>

using namespace slipstream;
using namespace slipstream::tests;

namespace {

void has(const std::string& text, std::initializer_list<const char*> parts)
{
    INFO(text);
    for (const char* part : parts) CHECK(text.find(part) != std::string::npos);
}

/// Collects what the library logs; may be read meanwhile.
class log_reader {
public:
    log_reader() : before_(spdlog::default_logger())
    {
        spdlog::set_default_logger(std::make_shared<spdlog::logger>("test", kept_));
    }
    ~log_reader() { spdlog::set_default_logger(before_); }
    std::string text() { return kept_->text(); }

private:
    class sink final : public spdlog::sinks::base_sink<std::mutex> {
    public:
        std::string text()
        {
            const std::lock_guard lock(mutex_);
            return text_;
        }

    private:
        void sink_it_(const spdlog::details::log_msg& message) override
        {
            text_.append(message.payload.data(), message.payload.size());
            text_ += '\n';
        }
        void flush_() override {}

        std::string text_;
    };

    std::shared_ptr<sink> kept_ = std::make_shared<sink>();
    std::shared_ptr<spdlog::logger> before_;
};

/// How long nothing may move before an engine counts as stalled: longer than busy neighbours keep its threads from the cores.
constexpr auto quiet_limit = 500ms * time_stretch;

/// False: it did not come true in time.
template <class Condition> bool comes_true(std::chrono::milliseconds time, Condition condition)
{
    for (const auto until = after(time); !condition();) {
        if (std::chrono::steady_clock::now() >= until) return false;
        std::this_thread::sleep_for(1ms);
    }
    return true;
}

/// A gate that outlives the test: bodies that nobody waits for any more may still look at it.
gate& lasting_gate()
{
    static auto* const all = new std::vector<std::unique_ptr<gate>>;
    all->push_back(std::make_unique<gate>());
    return *all->back();
}

} // namespace

TEST_CASE("a body that never ends: waits honour their deadline, the stall names it, every call says so, and the runtime ends",
          "[api][fault]")
{
    in_time(30, [] {
        const log_reader log;
        gate& g = lasting_gate();
        auto c = host_config();
        c.host_workers = 2;
        c.stall_limit = quiet_limit;
        auto rt = std::make_unique<engine>(c);
        buffer<u64> x(*rt, 8);
        x.upload(std::vector<u64>(8, 1));
        const auto done = rt->submit(step_task{x});
        CHECK(rt->wait(done).ok());
        const auto endless = rt->submit(g.task(), {.accesses = writes(x.data(), 64), .name = "the one that hangs"});
        const auto behind = rt->submit(step_task{x});
        const auto before = std::chrono::steady_clock::now();
        CHECK(rt->wait(endless, after(20ms)).state == task_state::pending);
        CHECK(std::chrono::steady_clock::now() - before < 5s);

        const std::string text = thrown<device_error>([&] { (void)rt->wait(behind); });
        has(text, {"no progress for", "config::stall_limit", "2 submission(s) unfinished", "worker ", " on SM ",
                   "block 0 of gate 'the one that hangs' (submission 0:", "1 of 2 worker(s) hold no unfinished task",
                   "a body does not"});
        // From now on every call says the same; what was done before is still known.
        CHECK(thrown<device_error>([&] { rt->submit(marker_task{}); }) == text);
        CHECK(thrown<device_error>([&] { (void)rt->wait_all(); }) == text);
        CHECK(thrown<device_error>([&] { (void)rt->query(behind); }) == text);
        CHECK(rt->query(done).ok());
        const auto end = std::chrono::steady_clock::now();
        { auto gone = std::move(x); }
        rt.reset();
        CHECK(std::chrono::steady_clock::now() - end < 5s);
        // A new one works beside the thread that still hangs.
        engine next(host_config());
        CHECK(next.wait(next.submit(marker_task{})).ok());
        g.open();
    });
}

TEST_CASE("a body that never ends holds up the runtime's end, and the process's, for exit_limit at most", "[api][fault]")
{
    in_time(30, [] {
        log_reader log;
        gate& g = lasting_gate();
        auto c = host_config();
        c.host_workers = 2;
        c.exit_limit = 300ms;
        auto rt = std::make_unique<engine>(c);
        rt->submit(g.task(), {.order = ordering::no_access, .name = "the one that hangs"});
        std::this_thread::sleep_for(600ms); // no limit while it lives
        CHECK(log.text().empty());
        const auto end = std::chrono::steady_clock::now();
        rt.reset();
        const auto took = std::chrono::steady_clock::now() - end;
        CHECK(took >= 250ms);
        CHECK(took < 10s);
        has(log.text(), {"no progress for", "config::exit_limit", "block 0 of gate 'the one that hangs'", "a body does not"});
        g.open();
    });
}

TEST_CASE("memory that is not the pool's, and what was given back before, is ignored with a warning, and the pool stays sound",
          "[api][fault]")
{
    in_time(20, [] {
        for (const u32 parts : {1u, 2u}) {
            INFO(parts << " parts");
            log_reader log;
            auto c = host_config();
            c.parts = parts;
            c.host_workers = 2 * parts;
            c.memory_bytes = 8192;
            engine rt(c);
            const u32 part = parts - 1;
            void* const first = rt.allocate(4096, part);
            void* const second = rt.allocate(4096, part);
            rt.release(nullptr, 4096);
            CHECK(log.text() == "");
            std::vector<char> mine(4096);
            rt.release(mine.data(), mine.size());
            has(log.text(), {"release() of 4096 B", "is ignored", "no piece of this pool", "give back what allocate() of this"});
            rt.release(static_cast<char*>(first) + 8, 8);
            rt.release(second, 8192); // more than there is
            rt.release(first, ~u64{0});
            CHECK(log.text().find("given back before") == std::string::npos);

            gate g; // so that the first time is not over at the second
            rt.submit(g.task(), {.accesses = writes(first, 4096)});
            rt.release(first, 4096);
            rt.release(first, 4096);
            has(log.text(), {"given back before", "each piece of allocate() back once"});
            g.open();
            CHECK(rt.allocate(4096, part) == first);
            CHECK(thrown<config_error>([&] { (void)rt.allocate(256, part); }) != ""); // it came back once
            rt.release(first, 4096);
            rt.release(second, 4096);
            CHECK(rt.allocate(8192, part) == first); // in one piece, and no other hole comes before it
        }
    });
}

TEST_CASE("batch mode: the end of a runtime tells how many tasks never ran; memory that went before it is none of them",
          "[api][fault]")
{
    in_time(20, [] {
        log_reader log;
        auto c = host_config();
        c.batch = true;
        {
            engine rt(c);
            buffer<u64> b(rt, 8);
            b.upload(std::vector<u64>(8, 1));
            rt.submit(step_task{b});
            rt.run_batch();
        }
        CHECK(log.text() == "");
        {
            engine rt(c);
            buffer<u64> b(rt, 8);
            rt.submit(step_task{b});
            rt.run_batch();
            rt.submit(step_task{b});
            rt.submit(step_task{b});
        }
        has(log.text(), {"batch mode", " 2 task(s) submitted after the last run_batch() never ran"});
    });
}

TEST_CASE("who waits for memory when the engine is lost is told so, and who asks afterwards, too", "[api][fault]")
{
    in_time(20, [] {
        const log_reader log;
        gate& g = lasting_gate();
        auto c = host_config();
        c.host_workers = 2;
        c.stall_limit = 200ms;
        c.memory_bytes = 4096;
        auto rt = std::make_unique<engine>(c);
        {
            buffer<u64> all(*rt, 512);
            rt->submit(g.task(), {.accesses = writes(all.data(), 4096)});
        }
        const std::string text = thrown<device_error>([&] { (void)rt->allocate(4096); });
        has(text, {"no progress for", "config::stall_limit"});
        CHECK(thrown<device_error>([&] { (void)rt->wait_all(); }) == text);
        CHECK(thrown<device_error>([&] { (void)rt->allocate(4096); }) == text);
        rt.reset();
        g.open();
    });
}

namespace {

/// Opens a gate behind the park of an engine that was given up: some rounds after the notifier has passed it on, so that
/// every role saw it.
struct {
    std::atomic<u32> commands{0}; ///< to the engine: run, then park
    std::atomic<bool> passed_on{false};
    std::atomic<u32> looks{0};
    std::atomic<gate*> behind{nullptr};
} parking;

void open_behind_park(device::edge e)
{
    if (e == device::edge::R8_command) ++parking.commands;
    if (e == device::edge::R9_phase && parking.commands == 2) parking.passed_on = true;
    if (e == device::edge::A8_command && parking.passed_on && ++parking.looks == 8) parking.behind.load()->open();
}

} // namespace

TEST_CASE("an engine that stands still leaves in order and says what waits on what", "[api][fault]")
{
    in_time(30, [] {
        const log_reader log;
        // The body ends while the engine waits for it to leave: what comes behind it is in the window then, and never runs. The
        // engine waits 0.5 s for that, in which its threads may not come to run where the cores are busy: then once more.
        for (;;) {
            gate& g = lasting_gate();
            parking.commands = 0;
            parking.passed_on = false;
            parking.looks = 0;
            parking.behind = &g;
            auto c = host_config();
            c.host_workers = 2;
            c.rings = 2;
            c.residency = 1h; // no park but that one
            c.stall_limit = quiet_limit;
            c.chaining = false; // behind the gate on its worker, a task that this worker had not read yet
                                // when the gate ended would run
            device::host_delay_hook = open_behind_park;
            std::string text;
            task_handle first, second;
            {
                engine rt(c);
                const auto place = [](u64 at) { return reinterpret_cast<void*>((u64{1} << 40) + at); };
                first = rt.submit(g.task(), {.accesses = writes(place(0), 8)});
                second = rt.submit(marker_task{}, {.accesses = reads_and_writes(place(0), 8), .name = "second"});
                rt.submit(marker_task{}, {.accesses = reads(place(0), 8)});
                const task_handle never{1, 500}; // of a ring that nobody submits to
                rt.submit(marker_task{}, {.after = never, .order = ordering::no_access});
                text = thrown<device_error>([&] { (void)rt.wait_all(); });
                CHECK(thrown<device_error>([&] { (void)rt.query(second); }) == text); // it did not run
            }
            device::host_delay_hook = nullptr;
            g.open(); // threads that were left behind would take the cores from the next attempt
            REQUIRE_FALSE(text.empty());
            if (text.find("was aborted") != std::string::npos || text.find("threads do not end") != std::string::npos) continue;
            const std::string first_name = std::to_string(first.ring) + ":" + std::to_string(first.position);
            const std::string second_name = std::to_string(second.ring) + ":" + std::to_string(second.position);
            has(text, {"no progress for", "window: ", "waits for nobody", "is at its head", "`after`"});
            has(text, {("marker 'second' (submission " + second_name + ") waits for " + first_name).c_str()});
            return;
        }
    });
}

TEST_CASE("a slow body is reported once and nothing is lost", "[api][fault]")
{
    in_time(30, [] {
        log_reader log;
        gate g;
        auto c = host_config();
        c.host_workers = 2;
        c.stall_report = quiet_limit;
        engine rt(c);
        const auto slow = rt.submit(g.task(), {.order = ordering::no_access});
        CHECK(comes_true(20s, [&] { return log.text().find("no progress") != std::string::npos; }));
        std::this_thread::sleep_for(300ms); // it looks every 10 ms
        const std::string text = log.text();
        has(text, {"no progress for", "it goes on", "control block: at work", "block 0 of gate (submission 0:0)"});
        CHECK(text.find("no progress") == text.rfind("no progress"));
        g.open();
        CHECK(rt.wait(slow).ok());
        CHECK(rt.wait(rt.submit(marker_task{})).ok());
    });
}

TEST_CASE("a paused, an idle and a waiting batch engine are no stall", "[api][fault]")
{
    in_time(30, [] {
        log_reader log;
        auto c = host_config();
        c.host_workers = 2;
        c.stall_report = quiet_limit;
        c.stall_limit = quiet_limit;
        engine idle(c), paused(c);
        CHECK(idle.wait(idle.submit(marker_task{})).ok());
        paused.pause();
        const auto h = paused.submit(marker_task{}); // with something to do
        c.batch = true;
        engine batch(c);
        const auto b = batch.submit(marker_task{});
        std::this_thread::sleep_for(2 * quiet_limit);
        CHECK(log.text().empty());
        CHECK(idle.wait(idle.submit(marker_task{})).ok());
        paused.resume();
        CHECK(paused.wait(h).ok());
        batch.run_batch();
        CHECK(batch.wait(b).ok());
    });
}

TEST_CASE("a limit of milliseconds::max() is never reached", "[api][fault]")
{
    in_time(20, [] {
        log_reader log;
        using limit = std::chrono::milliseconds config::*;
        for (const limit which : {&config::residency, &config::stall_report, &config::stall_limit, &config::exit_limit}) {
            auto c = host_config();
            c.host_workers = 2;
            c.residency = 10s;
            c.stall_report = 0ms;
            c.*which = std::chrono::milliseconds::max();
            gate g;
            std::vector<std::atomic<u32>> runs(20);
            std::jthread opens([&] {
                std::this_thread::sleep_for(200ms); // the watchdog looks every 10 ms
                g.open();
            });
            {
                engine rt(c);
                const auto slow = rt.submit(g.task(), {.order = ordering::no_access});
                if (which != &config::exit_limit) CHECK(rt.wait(slow).ok());
                if (which == &config::residency) CHECK(rt.launches() == 1);
                for (auto& r : runs)
                    rt.submit(count_task{reinterpret_cast<u64>(&r)}, {.after = slow, .order = ordering::no_access});
            }
            for (auto& r : runs) CHECK(r == 1);
            CHECK(log.text() == "");
        }
    });
}

namespace {

std::atomic<bool> frozen{false}, caught{false};

/// As if other work held the processor of the control block.
void freeze_control(device::edge e)
{
    while (e == device::edge::A8_command && frozen) {
        caught = true;
        std::this_thread::sleep_for(1ms);
    }
}

} // namespace

TEST_CASE("a control block that does not run is told from one that waits for bodies", "[api][fault]")
{
    in_time(30, [] {
        log_reader log;
        auto c = host_config();
        c.stall_report = quiet_limit;
        engine rt(c);
        CHECK(rt.wait(rt.submit(marker_task{})).ok());
        caught = false;
        frozen = true;
        device::host_delay_hook = freeze_control;
        (void)comes_true(1s, [] { return caught.load(); }); // or it has left, and stops where it begins again
        const auto h = rt.submit(marker_task{});
        CHECK(comes_true(10s, [&] { return log.text().find("no progress") != std::string::npos; }));
        has(log.text(), {"no progress for", "control block: has not moved either"});
        frozen = false;
        CHECK(rt.wait(h).ok());
        device::host_delay_hook = nullptr;
    });
}

namespace {

/// The host device with an end that only a GPU has: running() says that the kernel died of an error.
class mortal_backend final : public wrapped_backend {
public:
    mortal_backend(std::unique_ptr<host::backend> inner, std::atomic<bool>& died)
        : wrapped_backend(std::move(inner)), died_(died)
    {
    }
    bool running() override
    {
        if (died_)
            throw device_error("the megakernel ended with an error: an illegal memory access was encountered "
                               "(cudaErrorIllegalAddress)");
        return wrapped_backend::running();
    }

private:
    std::atomic<bool>& died_;
};

} // namespace

TEST_CASE("a lost device: the exception names type, name, submission and block on every worker that held one", "[api][fault]")
{
    in_time(30, [] {
        log_reader log;
        gate g;
        std::atomic<bool> died{false};
        for (const u64 start : {u64{0}, (u64{1} << 27) - 2, (u64{1} << 32) - 2}) { // the recorder keeps 27 bits of a position
            g.flag = 0;
            died = false;
            auto c = host_config();
            c.host_workers = 4;
            c.residency = 50ms; // threads of the host device end by themselves: nobody tells them to
            host::beginning b;
            b.position = start;
            b.around = [&](std::unique_ptr<host::backend> inner) {
                return std::make_unique<mortal_backend>(std::move(inner), died);
            };
            host::runtime_core core(
                c, detail::image_of<detail::platforms, gate_task, count_task, copy_task, fill_task, marker_task>(), b);
            const auto submit = [&](u32 type, const void* task, const submit_options& o) {
                task_handle h;
                (void)core.submit(type, task, o, true, h);
                return h;
            };
            submit_options named_one; // makes the table of names, which takes a sanitizer longer than the kernel stays
            named_one.name = "early";
            const auto early = submit(4, nullptr, named_one);
            CHECK(core.wait(early, deadline::max()).ok());
            CHECK(early.position == start);
            submit_options o;
            o.order = ordering::no_access;
            const gate_task waits = g.task();
            submit(0, &waits, o);
            o.blocks = 2;
            o.name = "wide";
            const auto wide = submit(0, &waits, o);
            CHECK(wide.position == start + 2);
            // Three blocks run, on three workers.
            const auto running = [&] {
                const std::string text = core.describe_workers();
                return text.find("block 1 of gate 'wide'") != std::string::npos
                    && text.find("1 of 4 worker(s)") != std::string::npos;
            };
            while (!running()) std::this_thread::sleep_for(1ms);
            died = true;
            const std::string text = thrown<device_error>([&] { (void)core.wait(wide, deadline::max()); });
            const auto named = [&](u64 position) { return "(submission 0:" + std::to_string(position) + ")"; };
            has(text, {"cudaErrorIllegalAddress", ("block 0 of gate " + named(start + 1)).c_str(),
                       ("block 0 of gate 'wide' " + named(start + 2)).c_str(),
                       ("block 1 of gate 'wide' " + named(start + 2)).c_str(), "1 of 4 worker(s) hold no unfinished task"});
            CHECK(core.query(early).ok());
            CHECK(thrown<device_error>([&] { submit(4, nullptr, {}); }) == text);
            has(log.text(), {"cudaErrorIllegalAddress"});
            g.open();
        }
    });
}

namespace {

/// A launch that fails half-way, as one of two kernels may.
class half_launching_backend final : public wrapped_backend {
public:
    half_launching_backend(std::unique_ptr<host::backend> inner, const host::host_arguments*& launched)
        : wrapped_backend(std::move(inner)), launched_(launched)
    {
    }
    void launch(const host::host_arguments& arguments) override
    {
        launched_ = &arguments;
        throw device_error("launch of the workers: too many blocks in cooperative launch (cudaErrorCooperativeLaunchTooLarge)");
    }

private:
    const host::host_arguments*& launched_;
};

} // namespace

TEST_CASE("a launch that fails half-way: whatever is resident is told to leave, and who waits is told why", "[api][fault]")
{
    in_time(30, [] {
        log_reader log;
        const host::host_arguments* launched = nullptr;
        host::beginning b;
        b.around = [&](std::unique_ptr<host::backend> inner) {
            return std::make_unique<half_launching_backend>(std::move(inner), launched);
        };
        host::runtime_core core(host_config(), detail::image_of<detail::platforms, count_task, copy_task, fill_task, marker_task>(),
                                b);
        task_handle h;
        (void)core.submit(3, nullptr, {}, true, h);
        has(thrown<device_error>([&] { (void)core.wait(h, deadline::max()); }), {"cudaErrorCooperativeLaunchTooLarge"});
        REQUIRE(launched != nullptr);
        CHECK(device::host_platform::load(device::edge::A8_command, launched->memory.page->command_word, device::order::relaxed,
                                          device::scope::system)
              == static_cast<u32>(device::command::abort));
    });
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) // which take such a request for a mistake of the program
TEST_CASE("memory that this machine does not have is refused with the settings to lower, and a smaller runtime works",
          "[api][fault]")
{
    auto c = host_config();
    c.memory_bytes = u64{1} << 56;
    has(thrown<device_error>([&] { engine rt(c); }), {"found no room", "config::memory_bytes"});
    engine rt(host_config());
    CHECK(rt.wait(rt.submit(marker_task{})).ok());
}
#endif
