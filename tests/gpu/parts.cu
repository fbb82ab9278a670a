// An engine of several parts (config::parts) on the GPU: each has a control block on an SM of its own, and they meet in
// device memory.
//   SLIPSTREAM_SEED=n replays one seed.
#include "cuda_work.cuh"
#include "tests/stress/failing_program.hpp"
#include <atomic>
#include <optional>

using namespace slipstream;
using namespace slipstream::tests;

namespace {

/// Device memory that is no pool's, so that pieces of it may lie in any part.
class placed_memory {
public:
    explicit placed_memory(u64 bytes) { REQUIRE(cudaMalloc(&data_, bytes) == cudaSuccess); }
    ~placed_memory() { cudaFree(data_); }
    placed_memory(const placed_memory&) = delete;
    placed_memory& operator=(const placed_memory&) = delete;
    template <class T = u64> T* data() const { return static_cast<T*>(data_); }

private:
    void* data_ = nullptr;
};

config parts_config(u32 parts)
{
    auto c = gpu_config();
    c.parts = parts;
    c.memory_bytes = 8u << 20;
    c.stall_limit = 15s; // parts that wait for each other for ever end with a report, not with the watchdog
    return c;
}

u64 given_seed(u64 otherwise) { return number_from_env("SLIPSTREAM_SEED", otherwise); }

/// Pauses an engine at random points, from a thread of its own.
class parker {
public:
    explicit parker(gpu_engine& rt)
        : thread_([this, &rt] {
              std::mt19937_64 random(1);
              try {
                  while (!over_) {
                      std::this_thread::sleep_for(std::chrono::microseconds(random() % 2000));
                      rt.pause();
                      if (random() % 2) std::this_thread::sleep_for(std::chrono::microseconds(random() % 500));
                      rt.resume();
                  }
              } catch (const error&) { // the submitting thread is told
              }
          })
    {
    }
    ~parker()
    {
        over_ = true;
        thread_.join();
    }

private:
    std::atomic<bool> over_{false};
    std::thread thread_;
};

/// What is wrong in the end. between(rt, t) is called before task t is submitted.
template <class Between>
std::string run_random_stream(const config& c, u64 seed, u32 tasks, const Between& between, bool pauses = false)
{
    std::mt19937_64 random(seed);
    stream_shape shape;
    shape.tasks = tasks;
    shape.spin_max = 40;
    shape.blocks_max = random() % 3 ? 8 : 400;
    shape.matrix_rows = 24 + static_cast<u32>(random() % 100);
    std::printf("seed %llu: parts %u window %u ring %u workers per SM %u blocks %u residency %lld ms\n",
                static_cast<unsigned long long>(seed), c.parts, c.window, c.ring_slots, c.workers_per_sm, shape.blocks_max,
                static_cast<long long>(c.residency.count()));
    std::fflush(stdout);
    const digest_stream stream(seed, shape);
    std::vector<u64> memory = stream.initial();
    const placed_memory cells(8 * memory.size());
    REQUIRE(cudaMemcpy(cells.data(), memory.data(), 8 * memory.size(), cudaMemcpyHostToDevice) == cudaSuccess);
    gpu_engine rt(c);
    {
        std::optional<parker> beside;
        if (pauses) beside.emplace(rt);
        submit_in_parts(rt, stream, cells.data(), random, [&](u32 t) { between(rt, t); });
    }
    REQUIRE(cudaMemcpy(memory.data(), cells.data(), 8 * memory.size(), cudaMemcpyDeviceToHost) == cudaSuccess);
    return stream.compare(memory);
}

void require_right(const std::string& verdict)
{
    INFO(verdict);
    REQUIRE(verdict.empty());
}

} // namespace

TEST_CASE("an engine of parts shares out the SMs, and each part works on its own memory", "[gpu][parts]")
{
    in_time(30, [] {
        for (const u32 parts : {1u, 2u, 3u, 5u}) {
            gpu_engine rt(parts_config(parts));
            CHECK(rt.on_cuda());
            CHECK(rt.control_blocks() == parts);
            std::vector<buffer<u64>> pieces;
            for (u32 p = 0; p < parts; ++p) {
                pieces.emplace_back(rt, 64, p);
                pieces[p].upload(std::vector<u64>(64, p));
            }
            for (u32 i = 0; i < 300; ++i)
                for (u32 p = 0; p < parts; ++p) CHECK(rt.submit(step_task{pieces[p]}, {.blocks = 1 + i % 3}).ring == p);
            std::vector<u64> out(64);
            for (u32 p = 0; p < parts; ++p) {
                pieces[p].download(out);
                CHECK(out == std::vector<u64>(64, stepped(p, 300)));
            }
        }
    });
}

TEST_CASE("random streams of crossing tasks in 2, 3 and 5 parts equal the sequential run", "[gpu][parts][fuzz]")
{
    in_time(90, [] {
        u64 seed = 8000;
        for (const u32 parts : {2u, 3u, 5u})
            for (const u32 window : {16u, 64u, 512u, 1024u}) {
                const u64 mine = given_seed(seed++);
                auto c = parts_config(parts);
                c.window = window;
                c.ring_slots = std::vector<u32>{4, 8, 64, 1024}[mix(mine) % 4];
                if (mine % 2 == 0) c.residency = 3ms; // each part leaves and comes back when its own time is up
                require_right(run_random_stream(c, mine, 6000, [](gpu_engine&, u32) {}));
            }
    });
}

TEST_CASE("several parts with two workers on an SM are refused: a control block might find none to itself",
          "[gpu][parts][two_per_sm]")
{
    auto c = parts_config(2);
    c.workers_per_sm = 2;
    try {
        gpu_engine engine(c);
        FAIL("it was made");
    } catch (const config_error& e) {
        CHECK(std::string(e.what()).find("use one of the two") != std::string::npos);
    }
}

TEST_CASE("parts that are paused between and within crossing tasks have all left, lose nothing and run nothing twice",
          "[gpu][parts][fuzz]")
{
    in_time(60, [] {
        u64 seed = 8200;
        for (const u32 parts : {2u, 3u, 5u}) {
            const u64 mine = given_seed(seed++);
            auto c = parts_config(parts);
            c.window = 64;
            u64 launches = 0;
            require_right(run_random_stream(c, mine, 6000, [&](gpu_engine& rt, u32 t) {
                launches = rt.launches();
                if (mix(mine + t) % 300 != 0) return;
                rt.pause();
                REQUIRE(cudaDeviceSynchronize() == cudaSuccess); // a part that had stayed would keep it
                rt.resume();
            }));
            CHECK(launches > 10);
        }
    });
}

TEST_CASE("pauses from another thread at any time change no result of crossing tasks", "[gpu][parts][fuzz]")
{
    in_time(60, [] {
        u64 seed = 8300;
        for (const u32 parts : {2u, 4u}) {
            auto c = parts_config(parts);
            c.residency = 2ms;
            require_right(run_random_stream(c, given_seed(seed++), 8000, [](gpu_engine&, u32) {}, true));
        }
    });
}

TEST_CASE("a chain of copies goes round the parts, by handle and by address", "[gpu][parts]")
{
    in_time(40, [] {
        for (const u32 parts : {2u, 5u})
            for (const bool with_handles : {false, true}) {
                gpu_engine rt(parts_config(parts));
                std::vector<buffer<unsigned char>> pieces;
                std::vector<data_handle> handles;
                constexpr u32 bytes = 8 * 64;
                for (u32 p = 0; p < parts; ++p) {
                    pieces.emplace_back(rt, bytes, p);
                    if (with_handles) handles.push_back(pieces[p].handle());
                }
                const std::vector<u64> ones(64, 1);
                pieces[0].upload({reinterpret_cast<const unsigned char*>(ones.data()), bytes});
                constexpr u32 rounds = 2000;
                for (u32 i = 0; i < rounds; ++i) {
                    const u32 from = i % parts, to = (i + 1) % parts;
                    rt.submit(step_task{inout<u64>(reinterpret_cast<u64*>(pieces[from].data()), 64)});
                    copy_task copy{pieces[from], pieces[to]};
                    if (with_handles) copy = {handles[from], handles[to]};
                    CHECK(rt.submit(copy).ring == to);
                }
                std::vector<u64> out(64);
                pieces[rounds % parts].download({reinterpret_cast<unsigned char*>(out.data()), bytes});
                CHECK(out == std::vector<u64>(64, stepped(1, rounds)));
            }
    });
}

TEST_CASE("random tasks that fail across parts end as they have to, with their cause", "[gpu][parts][failure]")
{
    in_time(60, [] {
        u64 seed = 8400;
        for (const u32 parts : {2u, 3u, 5u, 2u, 3u, 5u}) {
            const u64 mine = given_seed(seed++);
            std::printf("seed %llu: parts %u\n", static_cast<unsigned long long>(mine), parts);
            std::fflush(stdout);
            std::mt19937_64 random(mine);
            auto c = parts_config(parts);
            c.window = mine % 3 == 0 ? 16 : 64;
            c.ring_slots = mine % 2 ? 16 : 1024;
            if (mine % 5 == 0) c.residency = 2ms;
            const placed_memory memory(failing_program::bytes);
            gpu_engine rt(c);
            require_right(failing_program{}.run(rt, reinterpret_cast<u64>(memory.data<char>()), random,
                                                [](u32 code) { return fail_task{code, 0}; }));
        }
    });
}

TEST_CASE("a failure in one part cancels its readers in the others and runs none of their bodies; "
          "clear_failure forgets in all of them",
          "[gpu][parts][failure]")
{
    in_time(30, [] {
        for (const u32 parts : {2u, 5u}) {
            gpu_engine rt(parts_config(parts));
            std::vector<buffer<u64>> x;
            buffer<u32> counter(rt, 1);
            counter.upload(std::vector<u32>{0});
            for (u32 p = 0; p < parts; ++p) {
                x.emplace_back(rt, 64, p);
                x[p].upload(std::vector<u64>(64, 1));
            }
            const auto piece = [&](access_mode mode, u32 p) { return raw_access(mode, x[p].data(), 512); };
            for (u32 round = 0; round < 20; ++round) {
                const auto root = rt.submit(fail_task{40 + round, 1}, {.blocks = 3, .accesses = {piece(access_mode::write, 0)}});
                std::vector<task_handle> chain;
                for (u32 p = 1; p < parts; ++p) { // from part to part
                    const declared_access both[] = {piece(access_mode::read, p - 1), piece(access_mode::write, p),
                                                    writes(counter.data(), 4)};
                    chain.push_back(rt.submit(count_task{reinterpret_cast<u64>(counter.data()), 10},
                                              {.accesses = list_view<declared_access>(std::span(both))}));
                }
                const auto dependant = rt.submit(marker_task{}, {.after = chain.back(), .order = ordering::no_access});
                chain.push_back(dependant);
                for (const auto h : chain) {
                    const auto s = rt.wait(h);
                    REQUIRE((s.state == task_state::cancelled && s.code == 40 + round && s.cause == root));
                }
                std::vector<u64> out(64);
                CHECK_THROWS_AS(x[parts - 1].download(out), task_error);
                CHECK(rt.wait(rt.clear_failure()).ok());
                for (u32 p = 0; p < parts; ++p) CHECK(rt.wait(rt.submit(step_task{x[p]})).ok());
            }
            std::vector<u32> ran(1);
            counter.download(ran);
            CHECK(ran[0] == 0);
            std::vector<u64> out(64);
            for (u32 p = 0; p < parts; ++p) {
                x[p].download(out);
                CHECK(out == std::vector<u64>(64, stepped(1, 20)));
            }
        }
    });
}

TEST_CASE("tasks of every part follow a stream that was joined, the crossing ones too", "[gpu][parts][stream]")
{
    in_time(40, [] {
        for (const auto residency : {200ms, 2ms}) {
            auto c = parts_config(3);
            c.residency = residency;
            gpu_engine rt(c);
            stream s;
            buffer<u64> x(rt, count, 0), y(rt, count, 1), z(rt, count, 2);
            std::vector<u64> out(count);
            const auto bytes_of = [](const buffer<u64>& b) { return reinterpret_cast<unsigned char*>(b.data()); };
            for (u64 round = 1; round <= 20; ++round) {
                slow_set<<<1, 128, 0, s.raw>>>(x.data(), count, round, slow_ns);
                slow_set<<<1, 128, 0, s.raw>>>(z.data(), count, 100 + round, slow_ns);
                REQUIRE(cudaGetLastError() == cudaSuccess);
                rt.after_stream(s.raw);
                rt.submit(step_task{x});
                rt.submit(copy_task{{bytes_of(x), 8 * count}, {bytes_of(y), 8 * count}});
                rt.submit(step_task{y}, {.blocks = 4});
                rt.submit(step_task{z});
                y.download(out);
                REQUIRE(out == std::vector<u64>(count, stepped(round, 2)));
                z.download(out);
                REQUIRE(out == std::vector<u64>(count, stepped(100 + round, 1)));
                REQUIRE(rt.wait_all()); // nobody touches x and z
            }
        }
    });
}

TEST_CASE("stream work behind a crossing task's signal reads what it wrote: no wait on the host, and tasks behind that go on",
          "[gpu][parts][stream]")
{
    in_time(40, [] {
        for (const auto residency : {200ms, 2ms}) {
            auto c = parts_config(2);
            c.residency = residency;
            gpu_engine rt(c);
            stream s;
            buffer<u64> x(rt, count, 0), y(rt, count, 1);
            buffer<u32> burnt(rt, 1, 0);
            burnt.upload(std::vector<u32>{0});
            x.upload(std::vector<u64>(count, 1));
            REQUIRE(rt.wait_all());
            const auto bytes_of = [](const buffer<u64>& b) { return reinterpret_cast<unsigned char*>(b.data()); };
            constexpr u32 rounds = 25;
            for (u32 round = 0; round < rounds; ++round) {
                const declared_access both[] = {reads_and_writes(burnt.data(), 4), reads_and_writes(x.data(), 8 * count)};
                rt.submit(count_task{reinterpret_cast<u64>(burnt.data()), 100'000},
                          {.accesses = list_view<declared_access>(std::span(both))});
                rt.submit(step_task{x}, {.blocks = 4});
                rt.signal_stream(s.raw, rt.submit(copy_task{{bytes_of(x), 8 * count}, {bytes_of(y), 8 * count}}));
                copy_now<<<1, 128, 0, s.raw>>>(y.data(), x.data(), count); // x is what it was, unless this came early
                slow_set<<<1, 1, 0, s.raw>>>(nullptr, 0, 0, 20'000);
                rt.after_stream(s.raw);
            }
            REQUIRE(cudaGetLastError() == cudaSuccess);
            REQUIRE(ends_in(s.raw, 10s));
            std::vector<u64> out(count);
            x.download(out);
            CHECK(out == std::vector<u64>(count, stepped(1, rounds)));
            y.download(out);
            CHECK(out == std::vector<u64>(count, stepped(1, rounds)));
        }
    });
}
