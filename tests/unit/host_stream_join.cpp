// Joins with streams: what is refused where there are none, and the joins themselves over streams played by the test.
#include "api_tasks.hpp"
#include "host/runtime_core.hpp"
#include <map>

using namespace slipstream;
using namespace slipstream::tests;

namespace {

/// Streams whose work ends when the test says so. Handles are numbers.
struct played_streams : host::stream_port {
    struct waiting {
        void (*done)(void*);
        void* data;
    };
    struct held {
        const abi::word<u32>* word;
        u32 value;
        bool open() const
        {
            const u32 now = std::atomic_ref<u32>(const_cast<u32&>(word->raw)).load(std::memory_order_acquire);
            return static_cast<std::int32_t>(now - value) >= 0;
        }
    };

    bool done(cuda_stream stream) override
    {
        const std::lock_guard lock(mutex);
        return !busy[stream];
    }
    void call_when_done(cuda_stream stream, void (*done_)(void*), void* data) override
    {
        const std::lock_guard lock(mutex);
        if (refuses) throw config_error("refused");
        callbacks[stream].push_back({done_, data});
    }
    void hold(cuda_stream, const abi::word<u32>* word, u32 value, u32 number) override { holds[number] = {word, value}; }
    bool passed(u32 number) override { return lets_pass && holds[number].open(); }

    void work(u64 stream)
    {
        const std::lock_guard lock(mutex);
        busy[handle(stream)] = true;
    }
    void finish(u64 stream)
    {
        std::vector<waiting> now;
        {
            const std::lock_guard lock(mutex);
            busy[handle(stream)] = false;
            now.swap(callbacks[handle(stream)]);
        }
        for (const waiting& w : now) w.done(w.data);
    }
    static cuda_stream handle(u64 number) { return reinterpret_cast<cuda_stream>(number); }

    std::mutex mutex;
    std::map<cuda_stream, bool> busy;
    std::map<cuda_stream, std::vector<waiting>> callbacks;
    std::map<u32, held> holds;
    bool refuses = false;
    std::atomic<bool> lets_pass{true};
};

/// A stream whose queue has room for one wait: the next is taken when the first has been passed.
struct short_queue final : host::stream_port {
    bool done(cuda_stream) override { return true; }
    void call_when_done(cuda_stream, void (*done_)(void*), void* data) override { done_(data); }
    void hold(cuda_stream, const abi::word<u32>* word, u32 value, u32 number) override
    {
        const u32 before = holds.fetch_add(1);
        if (before == 0) {
            first = word;
            first_number = number;
            first_value = value;
        } else if (before == 1) {
            while (!open()) std::this_thread::sleep_for(100us);
        } else {
            if (refuses) throw config_error("refused");
            later_numbers.push_back(number);
        }
    }
    bool passed(u32 number) override { return drained || (number == first_number && open()); }
    bool open() const { return std::atomic_ref<u32>(const_cast<u32&>(first->raw)).load(std::memory_order_acquire) == first_value; }

    std::atomic<u32> holds{0};
    const abi::word<u32>* first = nullptr;
    u32 first_number = ~0u, first_value = 0;
    std::vector<u32> later_numbers;
    bool refuses = false, drained = false;
};

} // namespace

TEST_CASE("the host device refuses joins with streams in a sentence that says what to do instead", "[api][stream]")
{
    in_time(10, [] {
        engine rt(host_config());
        const auto h = rt.submit(marker_task{});
        for (const std::string& text : {thrown<config_error>([&] { rt.after_stream(nullptr); }),
                                        thrown<config_error>([&] { rt.signal_stream(nullptr, h); })}) {
            INFO(text);
            CHECK(text.find("no CUDA streams") != std::string::npos);
            CHECK(text.find("wait(handle)") != std::string::npos);
        }
        CHECK(rt.wait(h).ok()); // nothing has changed
    });
}

TEST_CASE("after_stream holds back what this thread submits later, and only that", "[api][stream]")
{
    in_time(20, [] {
        played_streams streams;
        engine rt(host_config());
        rt.core().use_streams(&streams);
        std::vector<u64> x(3, 1);
        streams.work(1);
        const auto before = rt.submit(step_task{{&x[0], 1}});
        rt.after_stream(played_streams::handle(1));
        const auto first = rt.submit(step_task{{&x[1], 1}}, {.after = before});
        const auto second = rt.submit(step_task{{&x[2], 1}}, {.order = ordering::no_access});
        task_handle of_other{};
        std::thread([&] { of_other = rt.submit(marker_task{}, {.order = ordering::no_access}); }).join();
        CHECK(rt.wait(before).ok());
        CHECK(rt.wait(of_other).ok());
        CHECK(rt.wait(second, after(30ms)).state == task_state::pending);
        CHECK(rt.query(first).state == task_state::pending);
        CHECK((x[1] == 1 && x[2] == 1));
        streams.finish(1);
        CHECK(rt.wait(first).ok());
        CHECK(rt.wait(second).ok());
        CHECK(x == std::vector<u64>(3, 4));
    });
}

TEST_CASE("with parts a stream holds back what is submitted later to each of them, crossing tasks too; and waits for a task of any",
          "[api][stream][parts]")
{
    in_time(20, [] {
        played_streams streams;
        auto c = host_config();
        c.parts = 3;
        c.host_workers = 6;
        engine rt(c);
        for (u32 p = 0; p < 3; ++p) rt.core(p).use_streams(&streams);
        std::vector<u64> x(3, 1);
        for (u32 p = 0; p < 3; ++p) rt.place(&x[p], 8, p);
        for (u32 round = 0; round < 5; ++round) {
            x = {1, 1, 1};
            streams.work(1);
            const auto before = rt.submit(step_task{{&x[0], 1}});
            rt.after_stream(played_streams::handle(1));
            const auto no_access = rt.submit(marker_task{}, {.order = ordering::no_access});
            std::vector<task_handle> behind;
            for (u32 p = 0; p < 3; ++p) behind.push_back(rt.submit(step_task{{&x[p], 1}}));
            const auto crossing = rt.submit(step_task{{x.data(), 3}});
            CHECK(rt.wait(before).ok());
            CHECK(rt.wait(crossing, after(20ms)).state == task_state::pending);
            for (const auto h : {no_access, behind[0], behind[1], behind[2]}) CHECK(rt.query(h).state == task_state::pending);
            rt.signal_stream(played_streams::handle(2), behind[2]);
            CHECK(std::ranges::count_if(streams.holds, [](const auto& h) { return !h.second.open(); }) == 1);
            streams.finish(1);
            CHECK(rt.wait(crossing).ok());
            CHECK(x == std::vector<u64>{stepped(1, 3), stepped(1, 2), stepped(1, 2)});
        }
    });
}

TEST_CASE("joins of streams that are done pile up nowhere: a part that had no task meanwhile takes the next one that crosses",
          "[api][stream][parts]")
{
    in_time(20, [] {
        for (const bool tries : {false, true}) {
            INFO((tries ? "try_submit" : "submit"));
            played_streams streams;
            auto c = host_config();
            c.parts = 2;
            c.host_workers = 4;
            if (tries) c.ring_slots = 4; // as many joins would be too many for its ring
            else c.accesses_max = 8;     // or for its task
            engine rt(c);
            for (u32 p = 0; p < 2; ++p) rt.core(p).use_streams(&streams);
            std::vector<u64> x(2, 1);
            for (u32 p = 0; p < 2; ++p) rt.place(&x[p], 8, p);
            const auto cross = [&](u32 home) {
                CHECK(rt.wait_all()); // there is room but for joins
                const step_task task{{&x[home], 1}};
                const declared_access away = reads(&x[1 - home], 8);
                task_handle h{};
                if (tries) REQUIRE(rt.try_submit(task, h, {.accesses = away}) == submit_status::submitted);
                else REQUIRE_NOTHROW(h = rt.submit(task, {.accesses = away}));
                CHECK(h.ring == home);
                CHECK(rt.wait(h).ok());
            };
            for (const u32 home : {0u, 1u}) {
                for (u32 i = 0; i < 40; ++i) { // one after the other
                    streams.work(1);
                    rt.after_stream(played_streams::handle(1));
                    streams.finish(1);
                    rt.submit(step_task{{&x[0], 1}});
                }
                cross(home);
                streams.work(1);
                for (u32 i = 0; i < 40; ++i) rt.after_stream(played_streams::handle(1)); // all under way at once
                streams.finish(1);
                cross(home);
            }
            CHECK(x == std::vector<u64>{stepped(1, 82), stepped(1, 2)});
        }
    });
}

TEST_CASE("an idle stream costs nothing, several streams are all waited for, in any order of their ends", "[api][stream]")
{
    in_time(20, [] {
        for (const bool reverse : {false, true}) {
            played_streams streams;
            engine rt(host_config());
            rt.core().use_streams(&streams);
            rt.after_stream(played_streams::handle(9)); // idle
            CHECK(streams.callbacks.empty());
            CHECK(rt.wait(rt.submit(marker_task{})).ok());
            for (u64 s = 1; s <= 7; ++s) {
                streams.work(s);
                rt.after_stream(played_streams::handle(s));
            }
            const auto h = rt.submit(marker_task{});
            for (u64 s = 1; s <= 7; ++s) {
                CHECK(rt.wait(h, after(3ms)).state == task_state::pending);
                streams.finish(reverse ? 8 - s : s);
            }
            CHECK(rt.wait(h).ok());
        }
    });
}

TEST_CASE("while every task waits for a stream the kernel is away, and comes back when the stream is done", "[api][stream]")
{
    in_time(20, [] {
        played_streams streams;
        auto c = host_config();
        c.residency = 60s;
        engine rt(c);
        rt.core().use_streams(&streams);
        CHECK(rt.wait(rt.submit(marker_task{})).ok()); // the kernel is resident now
        auto patience = 20ms; // for the service thread to see it; more on a busy machine
        for (u32 times_away = 0; times_away < 5;) { // bounded by in_time
            const u64 before = rt.launches();
            streams.work(1);
            rt.after_stream(played_streams::handle(1));
            const auto h = rt.submit(marker_task{});
            CHECK(rt.wait(h, after(patience)).state == task_state::pending);
            streams.finish(1);
            CHECK(rt.wait(h).ok());
            if (rt.launches() > before)
                ++times_away;
            else
                patience *= 2;
        }
    });
}

TEST_CASE("joins hold in batch mode, in a ring of four slots and with a try that found the ring full", "[api][stream]")
{
    in_time(20, [] {
        played_streams streams;
        auto c = host_config();
        c.batch = true;
        engine batch(c);
        batch.core().use_streams(&streams);
        u64 x = 1;
        streams.work(1);
        batch.after_stream(played_streams::handle(1));
        const auto h = batch.submit(step_task{{&x, 1}});
        std::thread ends([&] {
            std::this_thread::sleep_for(20ms);
            CHECK(x == 1);
            streams.finish(1);
        });
        batch.run_batch();
        ends.join();
        CHECK(batch.query(h).ok());
        CHECK(x == 4);

        c.batch = false;
        c.ring_slots = 4;
        engine rt(c);
        rt.core().use_streams(&streams);
        streams.work(1);
        rt.pause();
        task_handle last{};
        while (rt.try_submit(marker_task{}, last) == submit_status::submitted) {}
        rt.after_stream(played_streams::handle(1));
        task_handle refused{};
        CHECK(rt.try_submit(marker_task{}, refused) == submit_status::full); // and does not forget the join
        rt.resume();
        CHECK(rt.wait(last).ok());
        std::vector<u64> many(200, 1);
        std::vector<declared_access> all;
        for (auto& v : many) all.push_back(reads_and_writes(&v, 8));
        std::thread opens([&] {
            std::this_thread::sleep_for(20ms);
            streams.finish(1);
        });
        const auto long_one = rt.submit(step_task{many}, {.accesses = all}); // longer than its ring
        CHECK(rt.wait(long_one).ok());
        opens.join();
        CHECK(many == std::vector<u64>(200, 4));
    });
}

TEST_CASE("a refused join leaves nothing behind; more joins than words wait for one of them", "[api][stream]")
{
    in_time(20, [] {
        played_streams streams;
        engine rt(host_config());
        rt.core().use_streams(&streams);
        streams.work(1);
        streams.refuses = true;
        for (u32 i = 0; i < 2 * host::stream_join::words; ++i)
            CHECK_THROWS_AS(rt.after_stream(played_streams::handle(1)), config_error);
        streams.refuses = false;
        CHECK(rt.wait(rt.submit(marker_task{})).ok());
        std::thread ends([&] {
            std::this_thread::sleep_for(30ms);
            streams.finish(1);
        });
        for (u32 i = 0; i < host::stream_join::words; ++i) rt.after_stream(played_streams::handle(1));
        rt.after_stream(played_streams::handle(1)); // returns when the stream is done
        ends.join();
        streams.finish(1);
        CHECK(rt.wait(rt.submit(marker_task{})).ok());
    });
}

TEST_CASE("a stream's callback may come after the runtime is gone", "[api][stream]")
{
    // With words that live on it is seen: the callback finds the board closed and raises none.
    in_time(10, [] {
        played_streams streams;
        host::stream_join::word join_words[host::stream_join::words]{}, signal_words[host::stream_join::words]{};
        const auto raised = [&] { return std::ranges::count_if(join_words, [](const auto& w) { return w.raw != 0; }); };
        {
            host::stream_join joins(join_words, signal_words);
            host::stream_point point{};
            REQUIRE(joins.join(streams, played_streams::handle(1), point));
            REQUIRE(joins.join(streams, played_streams::handle(2), point));
            streams.finish(1);
            CHECK(raised() == 1);
        }
        streams.finish(2);
        CHECK(streams.callbacks[played_streams::handle(2)].empty()); // it was called
        CHECK(raised() == 1);
    });
    in_time(10, [] {
        played_streams streams;
        streams.work(1);
        {
            engine rt(host_config());
            rt.core().use_streams(&streams);
            rt.after_stream(played_streams::handle(1));
        }
        streams.finish(1);
    });
}

TEST_CASE("signal_stream opens the stream when the task is retired, not before; words are used again", "[api][stream]")
{
    in_time(30, [] {
        played_streams streams;
        engine rt(host_config());
        rt.core().use_streams(&streams);
        for (u32 round = 0; round < 3; ++round) {
            gate g;
            const auto h = rt.submit(g.task(), {.order = ordering::no_access});
            for (u32 i = 0; i < host::stream_join::words; ++i) rt.signal_stream(played_streams::handle(1), h);
            std::this_thread::sleep_for(2ms);
            REQUIRE(streams.holds.size() == host::stream_join::words);
            for (const auto& [number, hold] : streams.holds) REQUIRE_FALSE(hold.open());
            g.open();
            CHECK(rt.wait(h).ok());
            const auto until = after(5s);
            for (const auto& [number, hold] : streams.holds)
                while (!hold.open() && std::chrono::steady_clock::now() < until) std::this_thread::sleep_for(50us);
            for (const auto& [number, hold] : streams.holds) REQUIRE(hold.open());
        }
        // A retired task holds nothing up; a handle of nobody is refused.
        const auto retired = rt.submit(marker_task{});
        CHECK(rt.wait(retired).ok());
        const u32 value = streams.holds[0].value;
        rt.signal_stream(played_streams::handle(1), retired);
        CHECK(streams.holds[0].value == value);
        CHECK_THROWS_AS(rt.signal_stream(played_streams::handle(1), task_handle{}), config_error);
    });
}

TEST_CASE("the end of a runtime lets streams go on that wait for tasks it never ran", "[api][stream]")
{
    in_time(10, [] {
        played_streams streams;
        auto c = host_config();
        c.batch = true;
        std::thread passes;
        {
            engine rt(c);
            rt.core().use_streams(&streams);
            rt.signal_stream(played_streams::handle(1), rt.submit(marker_task{}));
            CHECK_FALSE(streams.holds.at(0).open());
            streams.lets_pass = false; // the stream has earlier work to do yet
            passes = std::thread([&] {
                std::this_thread::sleep_for(20ms);
                streams.lets_pass = true;
            });
        }
        CHECK(streams.lets_pass); // the words outlived the stream's wait
        passes.join();
    });
}

TEST_CASE("an engine that is stopped lets streams go on that wait for its tasks", "[api][stream][fault]")
{
    in_time(20, [] {
        static gate endless; // its worker hangs until then
        played_streams streams;
        auto c = host_config();
        c.stall_limit = 300ms;
        engine rt(c);
        rt.core().use_streams(&streams);
        u64 x = 1;
        rt.submit(endless.task(), {.accesses = writes(&x, 8)});
        const auto behind = rt.submit(step_task{{&x, 1}});
        rt.signal_stream(played_streams::handle(1), behind);
        CHECK_FALSE(streams.holds.at(0).open());
        CHECK_THROWS_AS((void)rt.wait(behind), device_error);
        while (!streams.holds.at(0).open()) std::this_thread::sleep_for(1ms);
        endless.open();
    });
}

TEST_CASE("a stream that takes its wait while the engine is being stopped goes on, too", "[api][stream][fault]")
{
    in_time(20, [] {
        struct slow_streams final : played_streams {
            void hold(cuda_stream stream, const abi::word<u32>* word, u32 value, u32 number) override
            {
                played_streams::hold(stream, word, value, number);
                holding = true;
                while (!stopped) std::this_thread::sleep_for(100us); // its queue is full
            }
            std::atomic<bool> holding{false}, stopped{false};
        };
        static gate endless; // its worker hangs until then
        slow_streams streams;
        auto c = host_config();
        c.stall_limit = 300ms;
        engine rt(c);
        rt.core().use_streams(&streams);
        const auto hangs = rt.submit(endless.task(), {.order = ordering::no_access});
        std::thread signals([&] { rt.signal_stream(played_streams::handle(1), hangs); });
        while (!streams.holding) std::this_thread::yield();
        CHECK_THROWS_AS((void)rt.wait(hangs), device_error);
        std::this_thread::sleep_for(50ms); // the service thread comes to its end
        streams.stopped = true;
        signals.join();
        const auto until = after(1000ms);
        while (!streams.holds.at(0).open() && std::chrono::steady_clock::now() < until) std::this_thread::sleep_for(1ms);
        CHECK(streams.holds.at(0).open());
        endless.open();
    });
}

TEST_CASE("while a stream's queue is full the words that would drain it are raised, and its wait's word is nobody else's",
          "[api][stream]")
{
    in_time(10, [] {
        short_queue queue;
        host::stream_join::word join_words[host::stream_join::words]{}, signal_words[host::stream_join::words]{};
        host::stream_join joins(join_words, signal_words);
        const cuda_stream stream = played_streams::handle(1);
        const task_handle first{0, 1}, second{0, 2}, third{0, 3};
        REQUIRE(joins.signal(queue, stream, first));
        bool taken = false;
        std::thread waits([&] { taken = joins.signal(queue, stream, second); });
        while (queue.holds != 2) std::this_thread::yield();

        queue.refuses = true;
        CHECK_THROWS_AS(joins.signal(queue, stream, third), config_error);
        queue.refuses = false;
        for (u32 i = 0; i < host::stream_join::words - 2; ++i)
            CHECK(joins.signal(queue, stream, third)); // also the word of the one refused
        CHECK_FALSE(joins.signal(queue, stream, third));
        std::sort(queue.later_numbers.begin(), queue.later_numbers.end());
        CHECK(std::adjacent_find(queue.later_numbers.begin(), queue.later_numbers.end()) == queue.later_numbers.end());
        CHECK(std::find(queue.later_numbers.begin(), queue.later_numbers.end(), queue.first_number) == queue.later_numbers.end());

        const auto raised = [&] {
            u32 count = 0;
            for (const auto& word : signal_words) count += word.raw != 0;
            return count;
        };
        joins.service([&](task_handle h) { return h == second; });
        CHECK(raised() == 0); // what the stream has not been given yet is not raised
        joins.service([&](task_handle h) { return h == first; });
        CHECK(raised() == 1);
        waits.join();
        CHECK(taken);
        joins.service([&](task_handle h) { return h == second; });
        CHECK(raised() == 2);
        CHECK(joins.signal(queue, stream, third)); // the first one's word is free again
        CHECK(queue.later_numbers.back() == queue.first_number);
        queue.drained = true;
    });
}
