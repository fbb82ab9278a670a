// Joins with CUDA streams, both ways: order is asserted by the data, over slow work on the earlier side.
#include "cuda_work.cuh"
#include <memory>

using namespace slipstream;
using namespace slipstream::tests;

TEST_CASE("a task that joined a stream reads what a slow kernel on it wrote, again and again", "[gpu][stream]")
{
    in_time(30, [] {
        for (const auto residency : {200ms, 2ms}) {
            auto c = gpu_config();
            c.residency = residency;
            gpu_engine rt(c);
            stream s;
            buffer<u64> x(rt, count);
            std::vector<u64> out(count);
            for (u64 round = 1; round <= 20; ++round) {
                // The download below is complete: nobody touches x.
                slow_set<<<1, 128, 0, s.raw>>>(x.data(), count, round, slow_ns);
                REQUIRE(cudaGetLastError() == cudaSuccess);
                rt.after_stream(s.raw);
                rt.submit(step_task{x}, {.blocks = 4});
                x.download(out);
                for (const u64 v : out) REQUIRE(v == stepped(round, 1));
            }
        }
    });
}

TEST_CASE("stream work behind a signal reads what a slow task wrote, again and again", "[gpu][stream]")
{
    in_time(30, [] {
        for (const auto residency : {200ms, 2ms}) {
            auto c = gpu_config();
            c.residency = residency;
            gpu_engine rt(c);
            stream s;
            u64* y = nullptr;
            REQUIRE(cudaMalloc(&y, 8 * count) == cudaSuccess);
            buffer<u64> x(rt, count);
            buffer<u32> burnt(rt, 1);
            rt.submit(fill_task{{reinterpret_cast<unsigned char*>(x.data()), 8 * count}, 0});
            rt.submit(fill_task{{reinterpret_cast<unsigned char*>(burnt.data()), 4}, 0});
            std::vector<u64> out(count);
            for (u64 round = 1; round <= 20; ++round) {
                // The chain: a task that takes its time, then one that writes x behind it.
                const declared_access both[] = {reads_and_writes(burnt.data(), 4), reads_and_writes(x.data(), 8 * count)};
                rt.submit(count_task{reinterpret_cast<u64>(burnt.data()), 200'000},
                          {.accesses = list_view<declared_access>(std::span(both))});
                const auto h = rt.submit(step_task{x}, {.blocks = 4});
                rt.signal_stream(s.raw, h);
                copy_now<<<1, 128, 0, s.raw>>>(x.data(), y, count);
                REQUIRE(cudaMemcpyAsync(out.data(), y, 8 * count, cudaMemcpyDeviceToHost, s.raw) == cudaSuccess);
                REQUIRE(ends_in(s.raw, 5s));
                for (const u64 v : out) REQUIRE(v == stepped(0, round));
            }
            CHECK(cudaFree(y) == cudaSuccess);
        }
    });
}

TEST_CASE("a pipeline goes through stream and tasks in turns without a wait on the host", "[gpu][stream]")
{
    in_time(30, [] {
        gpu_engine rt(gpu_config());
        stream s;
        buffer<u64> x(rt, count);
        slow_set<<<1, 128, 0, s.raw>>>(x.data(), count, 1, slow_ns);
        u64 expected = 1;
        for (u32 round = 0; round < 30; ++round) {
            rt.after_stream(s.raw);
            const auto h = rt.submit(step_task{x});
            rt.signal_stream(s.raw, h);
            slow_set<<<1, 1, 0, s.raw>>>(nullptr, 0, 0, 20'000); // some work of the stream's own
            expected = stepped(expected, 1);
        }
        REQUIRE(cudaGetLastError() == cudaSuccess);
        REQUIRE(ends_in(s.raw, 10s));
        std::vector<u64> out(count);
        x.download(out);
        for (const u64 v : out) REQUIRE(v == expected);
    });
}

TEST_CASE("signalled streams stand still while paused, and several go on with the task they wait for", "[gpu][stream]")
{
    in_time(20, [] {
        gpu_engine rt(gpu_config());
        std::vector<std::unique_ptr<stream>> streams;
        for (u32 i = 0; i < 4; ++i) streams.push_back(std::make_unique<stream>()); // fewer than connections, see runtime.hpp
        buffer<u32> b(rt, 1);
        b.upload(std::vector<u32>{0});
        rt.wait_all();
        rt.pause();
        const auto h = rt.submit(count_task{reinterpret_cast<u64>(b.data()), 1000}, {.accesses = writes(b.data(), 4)});
        for (auto& s : streams) {
            rt.signal_stream(s->raw, h);
            slow_set<<<1, 1, 0, s->raw>>>(nullptr, 0, 0, 1000);
        }
        CHECK_FALSE(ends_in(streams.front()->raw, 20ms));
        rt.resume();
        for (auto& s : streams) CHECK(ends_in(s->raw, 5s));
        CHECK(rt.wait(h).ok());
    });
}

TEST_CASE("the end of a runtime lets a stream go on whose task never ran", "[gpu][stream]")
{
    in_time(20, [] {
        stream s;
        {
            auto c = gpu_config();
            c.batch = true;
            gpu_engine rt(c);
            const auto h = rt.submit(marker_task{});
            rt.signal_stream(s.raw, h);
            slow_set<<<1, 1, 0, s.raw>>>(nullptr, 0, 0, 1000);
            CHECK_FALSE(ends_in(s.raw, 20ms));
        }
        CHECK(ends_in(s.raw, 5s));
    });
}

TEST_CASE("run_batch waits for the stream that its tasks follow", "[gpu][stream]")
{
    in_time(20, [] {
        auto c = gpu_config();
        c.batch = true;
        gpu_engine rt(c);
        stream s;
        buffer<u64> x(rt, count);
        slow_set<<<1, 128, 0, s.raw>>>(x.data(), count, 5, slow_ns);
        rt.after_stream(s.raw);
        rt.submit(step_task{x});
        rt.run_batch();
        std::vector<u64> out(count);
        REQUIRE(cudaMemcpy(out.data(), x.data(), 8 * count, cudaMemcpyDeviceToHost) == cudaSuccess);
        for (const u64 v : out) REQUIRE(v == stepped(5, 1));
    });
}

TEST_CASE("a stream that is being captured is refused, and its capture goes on", "[gpu][stream]")
{
    in_time(20, [] {
        gpu_engine rt(gpu_config());
        stream s;
        const auto h = rt.submit(marker_task{});
        REQUIRE(cudaStreamBeginCapture(s.raw, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
        CHECK_THROWS_AS(rt.after_stream(s.raw), config_error);
        cudaGraph_t graph = nullptr;
        CHECK(cudaStreamEndCapture(s.raw, &graph) == cudaSuccess);
        if (graph != nullptr) cudaGraphDestroy(graph);
        CHECK(rt.wait(h).ok());
    });
}

TEST_CASE("the null stream and a legacy stream join too", "[gpu][stream]")
{
    in_time(20, [] {
        gpu_engine rt(gpu_config());
        buffer<u64> x(rt, count);
        std::vector<u64> out(count);
        slow_set<<<1, 128>>>(x.data(), count, 7, slow_ns);
        rt.after_stream(nullptr);
        rt.submit(step_task{x});
        x.download(out);
        for (const u64 v : out) REQUIRE(v == stepped(7, 1));
        const auto h = rt.submit(step_task{x});
        rt.signal_stream(cudaStreamLegacy, h);
        slow_set<<<1, 1>>>(nullptr, 0, 0, 1000);
        CHECK(ends_in(nullptr, 5s));
    });
}
