// Import of broken input: one line that names file, place and remedy; no crash, no hang, no half-read trace.
#include "trace_catch.hpp"

#include <algorithm>
#include <unordered_map>

#include "host/trace/id_map.hpp"
#include "host/trace/stream_order.hpp"
#include "host/trace/string_table.hpp"
#include "host/trace/trace_import.hpp"
#include "tests/stress/in_time.hpp"
#include "trace_files.hpp"

using namespace slipstream::trace;
using namespace trace_test;

namespace {

// What every message must be, whatever went wrong.
void check_message(const std::string& message, const std::string& file, const std::string& part) {
    INFO(message);
    CHECK(message.starts_with(file + ": "));
    CHECK(has(message, part));
    CHECK(has(message, "; "));  // the remedy follows
    CHECK_FALSE(has(message, "\n"));
    CHECK(message.size() < 2048);
}

void kineto_fails(const std::string& file, const std::string& part) {
    check_message(error_of([&] { import_kineto(file); }), file, part);
}

void et_fails(const std::string& file, const std::string& part) {
    check_message(error_of([&] { import_execution_trace(file); }), file, part);
}

constexpr std::uint32_t hostile_ids = 150'000;

// What all ids of a hostile file are multiples of: the number of buckets that a table of so many has.
std::uint64_t buckets_of(std::uint32_t count, bool reserved) {
    std::unordered_map<std::uint64_t, std::uint32_t> table;
    if (reserved) table.reserve(count);
    else
        for (std::uint32_t i = 0; i < count; ++i) table.emplace(i, i);
    return table.bucket_count();
}

// `count` elements of a JSON array, each of them `before`, a multiple of `step` and `behind`.
std::string elements(std::uint32_t count, std::uint64_t step, const std::string& before, const std::string& behind) {
    std::string text;
    for (std::uint32_t i = 1; i <= count; ++i) text += (i == 1 ? "" : ",\n") + before + std::to_string(i * step) + behind;
    return text;
}

// `count` names of 16 bytes with one hash in libstdc++, which is MurmurHash64A with a seed that everybody knows: each half goes
// through steps that can be undone, so that for any first half there is a second one that leads to the same state.
std::vector<std::string> names_of_one_hash(std::uint32_t count) {
    constexpr std::uint64_t multiplier = 0xc6a4a7935bd1e995, seed = 0xc70f6907, bytes = 16, state = 1;
    std::uint64_t inverse = multiplier;  // Newton: each turn doubles the bits that are right
    for (int turn = 0; turn < 6; ++turn) inverse *= 2 - multiplier * inverse;
    const auto shifted = [](std::uint64_t v) { return v ^ (v >> 47); };  // undoes itself
    const auto append = [](std::string& name, std::uint64_t half) {
        for (int b = 0; b < 8; ++b) name += static_cast<char>(half >> 8 * b);
    };
    std::vector<std::string> names(count);
    for (std::uint64_t i = 0; i < count; ++i) {
        const std::uint64_t behind_first = ((seed ^ bytes * multiplier) ^ shifted(i * multiplier) * multiplier) * multiplier;
        append(names[i], i);
        append(names[i], shifted((behind_first ^ state) * inverse) * inverse);
    }
    return names;
}

// In quotes, for JSON. The reader takes bytes above 0x7f as they are, whether or not they are UTF-8.
std::string quoted(const std::string& name) {
    std::string out = "\"";
    for (const char c : name) {
        if (static_cast<unsigned char>(c) < 0x20 || c == '"' || c == '\\') {
            constexpr char digits[] = "0123456789abcdef";
            out += std::string("\\u00") + digits[c >> 4] + digits[c & 15];
        } else {
            out += c;
        }
    }
    return out + "\"";
}

}  // namespace

TEST_CASE("ids that are multiples of the number of buckets do not fall into one bucket", "[trace]") {
    id_map<std::uint32_t> map;
    map.reserve(hostile_ids);
    const std::size_t buckets = map.bucket_count();
    for (std::uint32_t i = 0; i < hostile_ids; ++i) map.emplace(std::uint64_t{i} * buckets, i);
    REQUIRE(map.bucket_count() == buckets);
    std::size_t longest = 0;
    for (std::size_t b = 0; b < buckets; ++b) longest = std::max(longest, map.bucket_size(b));
    CHECK(longest < 32);
}

TEST_CASE("ids that are multiples of a table's number of buckets do not take the import quadratic time", "[trace]") {
    const std::uint64_t reserved = buckets_of(hostile_ids, true), grown = buckets_of(hostile_ids, false);
    SECTION("of nodes") {
        slipstream::tests::in_time(5, [=] {
            const temp_dir dir;
            const std::string nodes = elements(hostile_ids, reserved, R"({"name":"x","id":)", "}");
            et_fails(dir.write("e.json", "{\"nodes\":[" + nodes + "]}"), "no operator touches device memory");
        });
    }
    SECTION("of launch calls") {
        slipstream::tests::in_time(5, [=] {
            const temp_dir dir;
            const std::string calls = elements(
                hostile_ids, reserved,
                R"({"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","tid":7,"ts":1,"dur":1,"args":{"correlation":)", "}}");
            const std::string text = replaced(kineto_text, "\"traceEvents\": [", "\"traceEvents\": [" + calls + ",");
            CHECK(import_kineto(dir.write("k.json", text)).tasks.size() == 4);
        });
    }
    SECTION("of record functions, and external ones") {
        slipstream::tests::in_time(5, [=] {
            const temp_dir dir;
            std::string ops;
            for (std::uint32_t i = 1; i <= hostile_ids; ++i) {
                const std::string id = std::to_string(i * grown);
                ops += R"({"ph":"X","cat":"cpu_op","name":"a","tid":9,"ts":1,"dur":1,"args":{"External id":)" + id +
                       R"(,"Record function id":)" + id + "}},\n";
            }
            std::string et = et_text, list;
            for (std::uint32_t i = 1; i <= hostile_ids; ++i)
                list += R"({"name":"a","id":)" + std::to_string(1000 + i) + R"(,"rf_id":)" + std::to_string(i * grown) + "},\n";
            const std::size_t at = et.find("\"nodes\":");
            REQUIRE(at != std::string::npos);
            et.insert(et.find('[', at) + 1, list);
            const std::string kineto = replaced(kineto_text, "\"traceEvents\": [", "\"traceEvents\": [" + ops);
            CHECK(import_kineto_with_et(dir.write("k.json", kineto), dir.write("e.json", et)).tasks.size() == 4);
        });
    }
}

TEST_CASE("names made to have one hash do not take the import quadratic time", "[trace]") {
    const std::vector<std::string> names = names_of_one_hash(hostile_ids);
#if defined(__GLIBCXX__) && __SIZEOF_SIZE_T__ == 8
    const auto hash = std::hash<std::string_view>{};
    REQUIRE(std::all_of(names.begin(), names.end(), [&](const std::string& name) { return hash(name) == hash(names[0]); }));
#endif
    SECTION("in the table") {
        slipstream::tests::in_time(5, [=] {
            string_table table;
            std::uint32_t wrong = 0, id = 0;
            for (int turn = 0; turn < 2; ++turn)
                for (std::uint32_t i = 0; i < hostile_ids; ++i) wrong += table.id_of(names[i]) != i;
            CHECK(wrong == 0);
            CHECK(table.find(names[7], id));
            CHECK(id == 7);
            CHECK_FALSE(table.find("no such name", id));
            CHECK(table.size() == hostile_ids);
            CHECK(table.bytes() == 16 * std::uint64_t{hostile_ids});
        });
    }
    SECTION("of nodes") {
        slipstream::tests::in_time(5, [=] {
            const temp_dir dir;
            std::string nodes;
            for (std::uint32_t i = 0; i < hostile_ids; ++i)
                nodes += (i == 0 ? "" : ",\n") + ("{\"id\":" + std::to_string(i + 1)) + ",\"name\":" + quoted(names[i]) + "}";
            et_fails(dir.write("e.json", "{\"nodes\":[" + nodes + "]}"), "no operator touches device memory");
        });
    }
}

TEST_CASE("many waits of the host before many streams do not take quadratic time", "[trace]") {
    slipstream::tests::in_time(5, [] {
        constexpr std::uint32_t waits = 100'000;
        std::vector<recorded_task> tasks;
        std::vector<sync_point> syncs;
        for (std::uint32_t i = 0; i < waits; ++i) {
            const double us = 10.0 * i;
            tasks.emplace_back().submit_us = us;
            tasks.back().stream = 0;
            sync_point s;
            s.kind = kineto_log::sync_kind::host_waits_stream;
            s.submit_us = s.recorded_us = us + 1;
            s.wait_on_stream = 0;
            syncs.push_back(s);
            tasks.emplace_back().submit_us = us + 2;
            tasks.back().stream = i + 1;  // each of them a stream of its own
        }
        chain_streams(tasks, syncs, 3 * waits);
        std::uint32_t other = 0;
        for (std::uint32_t i = 0; i < waits; ++i) other += tasks[2 * i + 1].after != std::vector{2 * i};
        CHECK(other == 0);  // each waits for what the host waited for last, and for nothing else
    });
}

TEST_CASE("a missing file, a directory and an empty file are refused", "[trace]") {
    const temp_dir dir;
    kineto_fails(dir.path() + "/none.json.gz", "no such file");
    kineto_fails(dir.path(), "is a directory");
    kineto_fails(dir.write("empty.json", ""), "empty");
    kineto_fails(dir.write_gz("empty.json.gz", ""), "empty");
    kineto_fails("/dev/null", "not a regular file");
    et_fails(dir.path() + "/none.json", "no such file");
    CHECK(has(error_of([] { import_trace("", ""); }), "neither"));
}

TEST_CASE("a gzip file cut at any place is refused", "[trace]") {
    const temp_dir dir;
    const std::string whole = read_all(dir.write_gz("k.json.gz", kineto_text));
    for (std::size_t bytes = 2; bytes < whole.size(); bytes += bytes < 32 ? 1 : 61) {
        const std::string file = dir.write("cut.json.gz", whole.substr(0, bytes));
        INFO(bytes);
        const std::string message = error_of([&] { import_kineto(file); });
        CHECK_FALSE(message.empty());
        if (bytes > 64) CHECK(has(message, "truncated gzip"));
    }
    // The trailer alone missing: all the text is there, but nothing vouches for it.
    kineto_fails(dir.write("cut.json.gz", whole.substr(0, whole.size() - 4)), "truncated gzip");
}

TEST_CASE("a damaged gzip file is refused", "[trace]") {
    const temp_dir dir;
    std::string bytes = read_all(dir.write_gz("k.json.gz", kineto_text));
    bytes[bytes.size() - 6] = static_cast<char>(bytes[bytes.size() - 6] ^ 0x55);  // in the checksum
    kineto_fails(dir.write("bad.json.gz", bytes), "damaged gzip");
}

TEST_CASE("JSON cut at any place is refused", "[trace]") {
    const temp_dir dir;
    for (std::size_t bytes = 1; bytes < kineto_text.size(); bytes += 37) {
        const std::string file = dir.write("cut.json", kineto_text.substr(0, bytes));
        INFO(bytes);
        CHECK_FALSE(error_of([&] { import_kineto(file); }).empty());
    }
    kineto_fails(dir.write("cut.json", kineto_text.substr(0, kineto_text.size() / 2)), "truncated JSON");
    et_fails(dir.write("cut.json", et_text.substr(0, et_text.size() / 2)), "truncated JSON");
}

TEST_CASE("malformed JSON is refused with its byte offset", "[trace]") {
    const temp_dir dir;
    kineto_fails(dir.write("bad.json", "hello, not JSON"), "byte 0");
    kineto_fails(dir.write("bad.json", replaced(kineto_text, "\"ph\":\"X\"", "\"ph\" \"X\"")), "malformed JSON");
    kineto_fails(dir.write("bad.json", kineto_text + "}"), "malformed JSON");
    kineto_fails(dir.write("bad.json", replaced(kineto_text, "aten::relu", std::string(1, '\0'))), "NUL");
    kineto_fails(dir.write("bad.json", replaced(kineto_text, "\"dur\":8.25", "\"dur\":1e999")), "malformed JSON");
    et_fails(dir.write("bad.json", replaced(et_text, "\"rf_id\":4,", "\"rf_id\":4;")), "malformed JSON");
}

TEST_CASE("nesting 200 000 deep is refused, not a stack overflow", "[trace]") {
    const temp_dir dir;
    const std::string deep(200'000, '[');
    kineto_fails(dir.write("deep.json", deep), "nested deeper than");
    kineto_fails(dir.write("deep.json", "{\"traceEvents\":" + deep), "nested deeper than");
    kineto_fails(dir.write("deep.json", "{\"other\":" + deep + std::string(200'000, ']') + "}"), "nested deeper than");
    std::string objects;
    for (int i = 0; i < 200'000; ++i) objects += "{\"a\":";
    kineto_fails(dir.write("deep.json", objects), "nested deeper than");
    et_fails(dir.write("deep.json", "{\"nodes\":[{\"id\":1,\"name\":\"x\",\"inputs\":" + deep), "nested deeper than");
}

TEST_CASE("a field of the wrong type or out of range is refused with its event", "[trace]") {
    const temp_dir dir;
    const auto fails = [&](const std::string& from, const std::string& to, const std::string& part) {
        kineto_fails(dir.write("k.json", replaced(kineto_text, from, to)), part);
    };
    fails("\"ts\":100,", "\"ts\":\"abc\",", "event 6, field ts: wrong type");
    fails("\"ts\":100,", "", "event 6, field ts: missing");
    fails("\"ts\":100,", "\"ts\":1e300,", "field ts");
    fails("\"dur\":8.25", "\"dur\":-3", "field dur: negative");
    fails("\"dur\":8.25", "\"dur\":1e12", "field dur: out of range: a GPU task of more than 600 s");
    fails("\"dur\":8.25", "\"dur\":NaN", "field dur: not a usable time");
    fails("\"dur\":8.25", "\"dur\":Infinity", "field dur: not a usable time");
    fails("\"dur\":8.25", "\"dur\":null", "field dur: wrong type");
    fails("\"grid\":[8,1,1]", "\"grid\":[8,1]", "field grid: expected exactly three");
    fails("\"grid\":[8,1,1]", "\"grid\":[8,1,1,1]", "field grid: expected exactly three");
    fails("\"grid\":[8,1,1]", "\"grid\":[8,-1,1]", "field grid: wrong type");
    fails("\"grid\":[8,1,1]", "\"grid\":[8,1,0]", "field grid: out of range");
    fails("\"grid\":[8,1,1]", "\"grid\":[99999999999,1,1]", "field grid: out of range");
    fails("\"grid\":[8,1,1]", "\"grid\":\"8\"", "field grid: wrong type");
    fails("\"block\":[256,1,1]", "\"block\":[256,1,1024]", "field block: out of range");
    fails("\"stream\":7", "\"stream\":\"seven\"", "field stream: wrong type");
    fails("\"correlation\":100", "\"correlation\":[1]", "field correlation: wrong type");
    fails("\"name\":\"relu_kernel\"", "\"name\":17", "field name: wrong type");
    fails("\"cat\":\"kernel\"", "\"cat\":3", "field cat: wrong type");
    fails("\"bytes\":256", "\"bytes\":-256", "field bytes");
    fails("\"bytes\":256", "\"bytes\":36893488147419103232", "field bytes");
    fails("\"bytes\":256", "\"bytes\":8796093022209", "field bytes: out of range: larger than 8796093022208");
    fails("\"shared memory\":64", "\"shared memory\":64.5", "field shared memory");
    kineto_fails(dir.write("k.json", R"({"traceEvents": [17]})"), "event 0: wrong type");
    kineto_fails(dir.write("k.json", R"({"traceEvents": {}})"), "no `traceEvents` array");
    kineto_fails(dir.write("k.json", R"({"traceEvents": []})"), "no GPU task");
    kineto_fails(dir.write("k.json", "{}"), "no `traceEvents` array");
    kineto_fails(dir.write("k.json", "[]"), "no GPU task");
    kineto_fails(dir.write("k.json", "3"), "no `traceEvents` array");
}

TEST_CASE("a broken execution trace is refused with its node", "[trace]") {
    const temp_dir dir;
    const auto fails = [&](const std::string& from, const std::string& to, const std::string& part) {
        et_fails(dir.write("e.json", replaced(et_text, from, to)), part);
    };
    fails("\"rf_id\":4", "\"rf_id\":\"four\"", "node 1 (id 4), field rf_id: wrong type");
    fails("\"id\":5", "\"id\":4", "a second node with this id");
    fails("\"id\":5,", "", "node 2, field id: missing");
    fails("[[20,50,0,64,4,\"cuda:0\"]]", "{\"values\":17}", "field inputs: wrong type");
    fails("[20,50,0,64,4,\"cuda:0\"]", "[20,50,-1,64,4,\"cuda:0\"]", "negative field");
    fails("[20,50,0,64,4,\"cuda:0\"]", "[20,50,0,18446744073709551615,4,\"cuda:0\"]", "does not fit");
    fails("[20,50,0,64,4,\"cuda:0\"]", "[20,50,140737488355328,64,4,\"cuda:0\"]",
          "node 1 (id 4), field inputs/outputs: a tensor that does not fit");
    fails("\"id\":5", "\"id\":18446744073709551615", "node 2, field id: negative or too large");
    fails("\"op_schema\":\"aten::relu(Tensor self) -> Tensor\"", "\"op_schema\":3", "field op_schema: wrong type");
    et_fails(dir.write("e.json", "{\"nodes\": []}"), "empty");
    et_fails(dir.write("e.json", "{\"nodes\": [3]}"), "node 0: wrong type");
    et_fails(dir.write("e.json", "{\"schema\": \"1.0.1\"}"), "no `nodes` array");
}

TEST_CASE("a second array of events or nodes is refused", "[trace]") {
    // Whose events count would be up to the reader: the first array's, the last one's, or both.
    const temp_dir dir;
    kineto_fails(dir.write("k.json", replaced(kineto_text, "\"deviceProperties\"", "\"traceEvents\":[],\"deviceProperties\"")),
                 "element 0: a second `traceEvents` array");
    et_fails(dir.write("e.json", replaced(et_text, "\"pid\": 7", "\"NODES\": []")), "a second `nodes` array");
}

TEST_CASE("minus zero is zero, as an id and as a count", "[trace]") {
    const temp_dir dir;
    const recorded_trace trace =
        import_kineto(dir.write("k.json", replaced(kineto_text, "\"device\":0,\"stream\":22", "\"device\":-0,\"stream\":-0")));
    CHECK(trace.tasks.back().stream == 0);
    CHECK(trace.tasks.back().device == 0);
    const std::string text = replaced(kineto_text, "\"correlation\":103,\"bytes\"", "\"correlation\":-0,\"bytes\"");
    CHECK_FALSE(import_kineto(dir.write("k.json", text)).tasks.empty());
}

TEST_CASE("bytes that many ranges move together stay within 64 bits", "[trace]") {
    const temp_dir dir;
    std::string inputs;
    for (int i = 0; i < 64; ++i)
        inputs += (i ? "," : "") + std::string("[20,") + std::to_string(100 + i) + ",0,70368744177664,8,\"cuda:0\"]";
    const std::string text = replaced(et_text, "\"inputs\":[[20,50,0,64,4,\"cuda:0\"]]", "\"inputs\":[" + inputs + "]");
    const recorded_trace trace = import_execution_trace(dir.write("e.json", text));
    CHECK(trace.tasks[0].accesses.size() == 65);
    CHECK(trace.tasks[0].moved_bytes == task_bytes_max);
}

TEST_CASE("what a file says does not depend on how much of it is read at a time", "[trace]") {
    const temp_dir dir;
    const std::string kineto = dir.write_gz("k.json.gz", kineto_text), et = dir.write("e.json", et_text);
    const recorded_trace whole = import_kineto_with_et(kineto, et);
    for (const std::uint32_t bytes : {8u, 9u, 31u, 64u, 1000u}) {
        import_limits l;
        l.read_bytes = bytes;
        const recorded_trace pieces = import_kineto_with_et(kineto, et, l);
        REQUIRE(pieces.tasks.size() == whole.tasks.size());
        for (std::size_t i = 0; i < whole.tasks.size(); ++i) {
            CHECK(pieces.tasks[i].name == whole.tasks[i].name);
            CHECK(pieces.tasks[i].start_us == whole.tasks[i].start_us);
            CHECK(pieces.tasks[i].accesses == whole.tasks[i].accesses);
        }
        CHECK(has(error_of([&] { import_kineto(dir.write("cut.json", kineto_text.substr(0, 700)), l); }), "truncated JSON"));
    }
}

TEST_CASE("text of the file that is printed holds no control characters", "[trace]") {
    const temp_dir dir;
    const recorded_trace trace =
        import_execution_trace(dir.write("e.json", replaced(et_text, "\"1.0.1\"", "\"\\u001b[31m\\n\"")));
    REQUIRE(trace.notes.size() == 2);
    CHECK(has(trace.notes[1], "(schema ?[31m?)"));
}

TEST_CASE("parent links in a circle are refused, but for a node that is its own parent", "[trace]") {
    const temp_dir dir;
    // 4 and 5 are of one another, and 6 leads there.
    std::string text = replaced(et_text, "\"id\":4,\"rf_id\":4,\"parent\":2", "\"id\":4,\"rf_id\":4,\"parent\":5");
    text = replaced(text, "\"id\":5,\"rf_id\":5,\"parent\":2", "\"id\":5,\"rf_id\":5,\"parent\":4");
    const std::string path = dir.write("e.json", text);
    const std::string error = error_of([&] { import_execution_trace(path); });
    check_message(error, path, "its parents form a circle");
    CHECK(has(error, "(id 4)"));
    const std::string own = replaced(et_text, "\"id\":4,\"rf_id\":4,\"parent\":2", "\"id\":4,\"rf_id\":4,\"parent\":4");
    CHECK(error_of([&] { import_execution_trace(dir.write("own.json", own)); }).empty());
}

TEST_CASE("Kineto given as execution trace and the other way round is said", "[trace]") {
    const temp_dir dir;
    kineto_fails(dir.write("e.json", et_text), "pass it with --et");
    et_fails(dir.write("k.json", kineto_text), "is a Kineto trace");
}

TEST_CASE("an execution trace of another run is refused", "[trace]") {
    const temp_dir dir;
    const std::string kineto = dir.write("k.json", kineto_text);
    const auto fails = [&](std::string text, const std::string& part) {
        const std::string et = dir.write("e.json", text);
        check_message(error_of([&] { import_kineto_with_et(kineto, et); }), et, part);
    };
    std::string other = et_text;
    for (const char* name : {"\"aten::relu\"", "\"aten::add_\"", "\"aten::copy_\""})
        other = replaced(other, name, "\"aten::other\"");
    fails(other, "does not belong to " + kineto);
    // One operator that fits proves little: most GPU tasks stay without ranges.
    fails(et_text.substr(0, et_text.find(",\n {\"name\":\"aten::add_\"")) + "]}", "only 1 of 4 GPU tasks");
}

TEST_CASE("every bound of the import is enforced", "[trace]") {
    const temp_dir dir;
    const std::string kineto = dir.write("k.json", kineto_text), et = dir.write("e.json", et_text);
    const auto kineto_error = [&](const import_limits& l) { return error_of([&] { import_kineto(kineto, l); }); };
    const auto pair_error = [&](const import_limits& l) { return error_of([&] { import_kineto_with_et(kineto, et, l); }); };
    import_limits l;
    l.file_bytes_max = 100;
    CHECK(has(kineto_error(l), "larger than 100 bytes"));
    l = {};
    l.tasks_max = 3;
    CHECK(has(kineto_error(l), "more than 3 GPU tasks"));
    l = {};
    l.records_max = 2;
    CHECK(has(kineto_error(l), "more than 2 events"));
    l = {};
    l.accesses_max = 5;
    CHECK(has(pair_error(l), "more than 5 byte ranges"));
    l = {};
    l.element_values_max = 10;
    CHECK(has(kineto_error(l), "more than 10 values"));
    l = {};
    l.element_bytes_max = 50;
    CHECK(has(kineto_error(l), "more than 50 bytes of text"));
    l = {};
    l.order_edges_max = 1;
    CHECK(has(kineto_error(l), "more than 1 stream-order edges"));
    l = {};
    l.spaces_max = 2;
    CHECK(has(pair_error(l), "node 3 (id 6): more than 2 storages"));
    l = {};
    l.names_bytes_max = 30;
    CHECK(has(kineto_error(l), "event 7: more than 30 bytes of different names"));
    CHECK(has(error_of([&] { import_execution_trace(et, l); }), "node 0 (id 2): more than 30 bytes of different names"));
    l.names_bytes_max = 75; // the names fit, the device behind them does not
    CHECK(has(error_of([&] { import_execution_trace(et, l); }), "more than 75 bytes of different names"));
    l = {};
    l.depth_max = 3;
    CHECK(has(kineto_error(l), "nested deeper than 3 levels"));
    l = {};
    l.task_us_max = 8;
    CHECK(has(kineto_error(l), "event 6, field dur: out of range"));
    l = {};
    l.token_bytes_max = 1 << 17;
    const std::string long_text = dir.write("long.json", replaced(kineto_text, "Record Window End", std::string(1 << 20, 'x')));
    CHECK(has(error_of([&] { import_kineto(long_text, l); }), "one token is longer than"));
}

TEST_CASE("text from the file cannot break the message over several lines", "[trace]") {
    const temp_dir dir;
    const std::string file = dir.path() + "/new\nline.json";
    const std::string message = error_of([&] { import_kineto(file); });
    CHECK(has(message, "new?line.json"));
    CHECK_FALSE(has(message, "\n"));
}
