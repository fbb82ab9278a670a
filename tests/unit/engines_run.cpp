// Engines on the host device: names, errors, members and handles of a program.
#include "trace_catch.hpp"

#include <slipstream/engines.hpp>

#include "host/backend.hpp"
#include "host/engines/declared_accesses.hpp"
#include "host/gpu_requirements.hpp"

using namespace slipstream;
using namespace slipstream::engines;

namespace {

/// y = 3 y + x: not commutative, so that order shows.
struct engine_step {
    in<u32> x;
    inout<u32> y;
    template <class Block> SLIPSTREAM_BODY void operator()(Block& block) const
    {
        for (u64 i = block.global_rank(); i < y.size(); i += block.global_size()) y[i] = 3 * y[i] + x[i];
    }
};

/// The same on a tile, to whom the accesses are told beside the struct.
struct engine_tile_step {
    u64 data;
    u32 rows, columns, pitch, add;
    template <class Block> SLIPSTREAM_BODY void operator()(Block& block) const
    {
        auto* const words = reinterpret_cast<u32*>(data);
        for (u64 i = block.global_rank(); i < u64{rows} * columns; i += block.global_size()) {
            u32& word = words[i / columns * pitch + i % columns];
            word = 5 * word + add;
        }
    }
};

struct engine_failing {
    u32 code;
    template <class Block> SLIPSTREAM_BODY void operator()(Block& block) const { block.fail(code); }
};

/// Sizes that are no multiple of a word's.
struct engine_byte {
    unsigned char value;
    template <class Block> SLIPSTREAM_BODY void operator()(Block&) const {}
};
struct engine_six_bytes {
    u16 a, b, c;
    template <class Block> SLIPSTREAM_BODY void operator()(Block&) const {}
};

kernel_image image()
{
    return detail::image_of<detail::platforms, engine_step, engine_tile_step, engine_failing, copy_task, fill_task, marker_task>();
}

template <class F>
std::string message_of(F&& f)
{
    try {
        f();
    } catch (const error& e) {
        return e.what();
    }
    return "";
}

} // namespace

TEST_CASE("a program copies a struct's own bytes: what lies behind it is not read, and the rest of its words is zero", "[engines]")
{
    typed_program<engine_byte, engine_six_bytes> p;
    const engine_byte bytes[8] = {{1}, {2}, {3}, {4}, {5}, {6}, {7}, {8}};
    const engine_six_bytes sixes[2] = {{0x0102, 0x0304, 0x0506}, {0xffff, 0xffff, 0xffff}};
    p.add(bytes[0]);
    p.add(sixes[0]);
    REQUIRE(p.argument_words().size() == 2);
    const u64 byte = 1, six = 0x0506'0304'0102;
    CHECK(p.argument_words()[0] == byte);
    CHECK(p.argument_words()[1] == six);
}

TEST_CASE("a program refuses a type that is not in its list, and an `after` that is no earlier task, and is as before", "[engines]")
{
    program p(image());
    const engine_failing task{1};
    const u32 type = 2, types = p.image().types;
    const auto refused = [&](u32 t, std::vector<u32> after) {
        const std::size_t words = p.argument_words().size(), tasks = p.tasks().size();
        const std::string text = message_of([&] { p.add(t, &task, 1, {}, after); });
        CHECK(p.argument_words().size() == words);
        CHECK(p.tasks().size() == tasks);
        return text;
    };
    CHECK(refused(type, {0}).find("`after` of task 0 names task 0") == 0); // itself
    CHECK(p.add(type, &task, 1, {}) == 0);
    CHECK(p.add(type, &task, 1, {}, std::vector<u32>{0}) == 1);
    CHECK(refused(type, {0, 1, 2}).find("`after` of task 2 names task 2") == 0);
    CHECK(refused(type, {~0u}).find("names task 4294967295") != std::string::npos);
    CHECK(refused(types, {}).find("task type " + std::to_string(types)) == 0);
    CHECK(refused(~0u, {}).find("task type 4294967295") == 0);
    CHECK(p.add(type, &task, 1, {}, std::vector<u32>{1, 0}) == 2);
}

TEST_CASE("a program refuses a number of blocks that no task can have, and is as before", "[engines]")
{
    program p(image());
    const engine_failing task{0};
    for (const u32 blocks : {0u, 0x80000000u, ~0u}) {
        CHECK_THROWS_AS(p.add(2, &task, blocks, {}), config_error);
        CHECK(message_of([&] { p.add(2, &task, blocks, {}); })
              == "task 0 has " + std::to_string(blocks) + " blocks: a task has 1 to 2147483647");
    }
    CHECK(p.tasks().empty());
    CHECK(p.argument_words().empty());
    CHECK(p.add(2, &task, 1, {}) == 0);
    CHECK(p.add(2, &task, 0x7fffffffu, {}) == 1);
}

TEST_CASE("auto is the first GPU with which nothing is wrong, not the first one, and the host where there is none", "[engines]")
{
    std::vector<std::string> problems{"too old", "", "does not answer", ""};
    std::vector<int> asked;
    const auto first = [&] {
        asked.clear();
        return host::first_usable_gpu(static_cast<int>(problems.size()), [&](int ordinal) {
            asked.push_back(ordinal);
            return problems.at(static_cast<std::size_t>(ordinal));
        });
    };
    CHECK(first() == 1);
    CHECK(asked == std::vector<int>{0, 1}); // those behind it are left alone: asking costs a context's time
    problems[1] = "one SM";
    CHECK(first() == 3);
    problems[3] = "no cooperative launch";
    CHECK(first() == -1);
    problems.clear();
    CHECK(first() == -1);
    CHECK(asked.empty());

    const int here = host::first_usable_gpu(); // of this machine, whatever it has
    const auto device = open_device("auto");
    CHECK(device->is_cuda() == (here >= 0));
    if (here >= 0)
        CHECK(device->ordinal() == static_cast<u32>(here));
    else
        CHECK_FALSE(host::cuda_problem(0).empty()); // says why
}

TEST_CASE("unknown engines and devices are refused with what would do", "[engines]")
{
    const auto device = open_device("host");
    CHECK_THROWS_AS(make_engine("warp", {}, *device, image()), config_error);
    CHECK(message_of([&] { make_engine("warp", {}, *device, image()); })
          == "unknown engine 'warp' on host: use one of serial, slipstream, slipstream-hostdep");
    CHECK_THROWS_AS(make_engine("streams", {}, *device, image()), config_error); // the host has no streams
    CHECK_THROWS_AS(open_device("gpu"), config_error);
    CHECK_THROWS_AS(open_device("cuda:"), config_error);
    CHECK_THROWS_AS(open_device("cuda:x"), config_error);
    CHECK(engine_names(true) == std::vector<std::string>{"serial", "streams", "acs-sw", "graph-rebuild", "graph-update",
                                                         "graph-replay", "slipstream", "slipstream-hostdep"});
    CHECK(engine_names(false) == std::vector<std::string>{"serial", "slipstream", "slipstream-hostdep"});
}

TEST_CASE("members, handles, tiles and after give the same result on every host engine", "[engines]")
{
    const auto device = open_device("host");
    constexpr u32 n = 64, tasks = 300;
    auto* const x = static_cast<u32*>(device->take(n * 4));
    auto* const y = static_cast<u32*>(device->take(n * 4));
    std::vector<u32> ones(n, 1);
    program p(image());
    const data_handle hx = p.register_range(x, n * 4);
    const data_handle same = p.register_range(x, n * 4); // equal memory: the runtime answers with one handle for both
    const data_handle hy = p.register_tile(y, n, 4, n);  // rows without gaps
    REQUIRE(hx.index != same.index);
    for (u32 t = 0; t < tasks; ++t) {
        const engine_step a{t % 2 ? in<u32>(hx) : in<u32>(x, n), inout<u32>(y, n)};
        const engine_step b{in<u32>(y, n), t % 3 ? inout<u32>(same) : inout<u32>(x, n)};
        const engine_tile_step c{reinterpret_cast<u64>(y), 4, 8, 16, t};
        switch (t % 4) {
        case 0:
        case 2: p.add(0, &a, 1 + t % 5, {}); break;
        case 1: p.add(0, &b, 1 + t % 3, {}); break;
        default: {
            const slipstream::declared_access whole_tile = on(access_mode::read_write, hy);
            const slipstream::declared_access by_hand = tile(access_mode::read_write, y, 32, 4, 64);
            const u32 previous = t - 1;
            if (t % 8 == 3)
                p.add(1, &c, 2, {&whole_tile, 1});
            else
                p.add(1, &c, 1, {&by_hand, 1}, {&previous, 1});
        }
        }
    }
    const auto reset = [&] {
        device->write(x, ones.data(), n * 4);
        device->fill(y, 0, n * 4);
    };
    const auto contents = [&] {
        std::vector<u32> both(2 * n);
        device->read(both.data(), x, n * 4);
        device->read(both.data() + n, y, n * 4);
        return both;
    };
    const auto serial = make_engine("serial", {}, *device, image());
    serial->prepare(p);
    reset();
    CHECK(serial->run(p).makespan_us > 0);
    const auto expected = contents();
    for (const std::string name : {"slipstream", "slipstream-hostdep"}) {
        INFO(name);
        const auto other = make_engine(name, {}, *device, image());
        CHECK(other->name() == name);
        CHECK(other->runtime() == nullptr);
        other->prepare(p);
        for (u32 run = 0; run < 3; ++run) {
            reset();
            const run_result result = other->run(p);
            CHECK(result.makespan_us >= result.submit_us);
            CHECK(contents() == expected);
        }
        CHECK(other->runtime() != nullptr);
    }
}

TEST_CASE("what a task declares is its members' accesses and the further ones", "[engines]")
{
    std::vector<u32> memory(64);
    program p(image());
    const engine_step a{{memory.data(), 8}, {memory.data() + 8, 16}};
    const slipstream::declared_access extra = tile(access_mode::read, memory.data(), 8, 3, 32);
    p.add(0, &a, 1, {&extra, 1});
    const engine_failing f{1};
    p.add(2, &f, 1, {});
    p.add(2, &f, 1, {}, {}, ordering::no_access);
    std::vector<abi::access_entry> entries;
    REQUIRE_FALSE(declared_accesses(p, p.tasks()[0], entries));
    REQUIRE(entries.size() == 3);
    CHECK(entries[0].reads());
    CHECK(entries[1].begin() == reinterpret_cast<u64>(memory.data() + 8));
    CHECK(entries[1].end() - entries[1].begin() == 64);
    CHECK((entries[1].reads() && entries[1].writes()));
    CHECK(entries[2].rows() == 3);
    CHECK(declared_accesses(p, p.tasks()[1], entries)); // nothing declared: whole memory
    CHECK_FALSE(declared_accesses(p, p.tasks()[2], entries));
    CHECK(entries.empty());
}

TEST_CASE("a failing task ends the run with its number and name", "[engines]")
{
    const auto device = open_device("host");
    program p(image());
    const engine_failing good{0}, bad{7};
    p.add(2, &good, 1, {}, {}, ordering::no_access);
    p.add(2, &bad, 1, {}, {}, ordering::no_access, "the bad one");
    for (const std::string name : {"slipstream", "slipstream-hostdep"}) {
        const auto engine = make_engine(name, {}, *device, image());
        engine->prepare(p);
        CHECK(message_of([&] { engine->run(p); }) == "task 1 (the bad one) failed with code 7");
    }
}

TEST_CASE("hostdep ships upstream ids and no accesses: a program of independent tasks ships none, a chain at most one each",
          "[engines]")
{
    const auto device = open_device("host");
    constexpr u32 n = 16, tasks = 200;
    auto* const data = static_cast<u32*>(device->take(2 * n * tasks * 4));
    const auto ids_of = [&](const program& p) {
        const auto engine = make_engine("slipstream-hostdep", {}, *device, image());
        engine->prepare(p);
        for (const auto& [name, count] : engine->run(p).counts)
            if (std::string(name) == "upstream_ids") return count;
        return ~u64{0};
    };
    program independent(image()), chain(image()), barriers(image());
    for (u32 t = 0; t < tasks; ++t) {
        const engine_step a{in<u32>(data + 2 * n * t, n), inout<u32>(data + 2 * n * t + n, n)};
        independent.add(0, &a, 1, {});
        const engine_step c{in<u32>(data, n), inout<u32>(data + n, n)};
        chain.add(0, &c, 1, {});
        const engine_failing whole{0};
        if (t % 50 == 49)
            barriers.add(2, &whole, 1, {});
        else
            barriers.add(0, &a, 1, {});
    }
    CHECK(ids_of(independent) == 0);
    CHECK(ids_of(chain) <= tasks - 1);
    CHECK(ids_of(barriers) <= 2 * tasks); // a whole-memory task names who runs, and is named by who comes
}

TEST_CASE("hostdep waits for its oldest task when its list is full", "[engines]")
{
    const auto device = open_device("host");
    constexpr u32 n = 16, tasks = 3000;
    auto* const x = static_cast<u32*>(device->take(n * 4));
    auto* const y = static_cast<u32*>(device->take(n * 4));
    program p(image());
    for (u32 t = 0; t < tasks; ++t) {
        const engine_step a{in<u32>(t % 2 ? x : y, n), inout<u32>(t % 2 ? y : x, n)};
        p.add(0, &a, 1, {});
    }
    std::vector<u32> ones(n, 1), expected(n), got(n);
    const auto reset = [&] {
        device->write(x, ones.data(), n * 4);
        device->write(y, ones.data(), n * 4);
    };
    const auto serial = make_engine("serial", {}, *device, image());
    serial->prepare(p);
    reset();
    serial->run(p);
    device->read(expected.data(), y, n * 4);
    config c;
    c.window = 16;
    c.accesses_max = 64; // the list holds half as many
    const auto hostdep = make_engine("slipstream-hostdep", c, *device, image());
    hostdep->prepare(p);
    reset();
    u64 full = 0;
    for (const auto& [name, count] : hostdep->run(p).counts)
        if (std::string(name) == "list_full") full = count;
    device->read(got.data(), y, n * 4);
    CHECK(got == expected);
    CHECK(full > 0);
}

TEST_CASE("a run tells the CPU time of the process, and of the submitting thread within it", "[engines]")
{
    const auto device = open_device("host");
    constexpr u32 n = 4096;
    auto* const x = static_cast<u32*>(device->take(n * 4));
    auto* const y = static_cast<u32*>(device->take(n * 4));
    program p(image());
    const engine_step step{in<u32>(x, n), inout<u32>(y, n)};
    for (u32 t = 0; t < 300; ++t) p.add(0, &step, 1, {});
    config small;
    small.host_workers = 2;
    for (const std::string& name : engine_names(false)) {
        const auto e = make_engine(name, small, *device, p.image());
        e->prepare(p);
        const run_result r = e->run(p);
        INFO(name);
        CHECK(r.cpu_us > 0);
        CHECK(r.submitter_cpu_us > 0);
        CHECK(r.submitter_cpu_us <= r.cpu_us * 1.01 + 5); // the two clocks are not read at once
        CHECK(e->scheduling_sms() == 0);                  // the host device has none
    }
}
