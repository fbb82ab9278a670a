// Import of well-formed traces: what each of the three inputs turns into.
#include "trace_catch.hpp"

#include "host/trace/execution_trace.hpp"
#include "host/trace/hazard_analysis.hpp"
#include "host/trace/trace_import.hpp"
#include "trace_files.hpp"

using namespace slipstream::trace;
using namespace trace_test;

namespace {

bool noted(const recorded_trace& t, const std::string& part) {
    for (const std::string& note : t.notes)
        if (has(note, part)) return true;
    return false;
}

void check_pair(const recorded_trace& t) {
    REQUIRE(t.tasks.size() == 4);
    CHECK(t.dependencies == dependency_source::data);
    CHECK(t.durations_known);
    CHECK(t.matched == 4);
    CHECK(t.unmatched == 0);
    CHECK(t.dropped == 0);
    CHECK(t.tasks[0].name == "relu_kernel");
    CHECK(t.tasks[1].name == "add_part_1");
    CHECK(t.tasks[2].name == "add_part_2");
    CHECK(t.tasks[3].kind == task_kind::memcpy);
    const auto space = [&](std::size_t task, std::size_t access) {
        return t.spaces[t.tasks[task].accesses[access].space].storage_id;
    };
    REQUIRE(t.tasks[0].accesses.size() == 2);
    CHECK(space(0, 0) == 50);
    CHECK(t.tasks[0].accesses[0] == byte_access{t.tasks[0].accesses[0].space, 0, 256, true, false});
    CHECK(space(0, 1) == 51);
    CHECK(t.tasks[0].accesses[1] == byte_access{t.tasks[0].accesses[1].space, 0, 256, false, true});
    // add_ marks `self` as written, starts at element 16 of 4 bytes, and its host tensor is not ordered.
    for (const std::size_t i : {1u, 2u}) {
        REQUIRE(t.tasks[i].accesses.size() == 1);
        CHECK(t.tasks[i].accesses[0] == byte_access{t.tasks[0].accesses[1].space, 64, 192, true, true});
        CHECK_FALSE(t.tasks[i].bytes_known);  // two kernels share what the operator moved
    }
    CHECK(t.tasks[0].bytes_known);
    CHECK(t.tasks[0].moved_bytes == 512);
    CHECK(t.tasks[3].bytes_known);
    CHECK(t.tasks[3].moved_bytes == 256);
    CHECK(t.tasks[2].grid == std::array<std::uint32_t, 3>{3, 2, 1});
    CHECK(t.tasks[2].block == std::array<std::uint32_t, 3>{128, 1, 1});
    CHECK(t.tasks[2].shared_bytes == 64);
    CHECK(t.tasks[0].duration_us == 8.25);
    CHECK(t.tasks[0].submit_us == 12);
    CHECK(t.tasks[0].start_us == 100);
    CHECK(t.tasks[3].stream == 22);
    const std::vector<hazard_edge> edges = analyze(t).edges;
    CHECK(edges == std::vector<hazard_edge>{{1, 0, edge_raw | edge_waw},
                                            {2, 0, edge_raw | edge_waw},
                                            {2, 1, edge_raw | edge_waw},
                                            {3, 0, edge_raw},
                                            {3, 2, edge_raw}});
}

// kineto_text in the dialect of 2021: other categories, lower-case keys, no ids that join, thread ids as strings.
std::string old_dialect() {
    return R"json({"traceEvents": [
 {"ph":"X","cat":"Operator","name":"aten::relu","pid":7,"tid":"7","ts":10,"dur":20,"args":{"external id":1002}},
 {"ph":"X","cat":"Operator","name":"aten::add_","pid":7,"tid":"7","ts":40,"dur":20,"args":{"External id":"1003"}},
 {"ph":"X","cat":"Operator","name":"aten::copy_","pid":7,"tid":"7","ts":70,"dur":20,"args":{"external id":1004}},
 {"ph":"X","cat":"Kernel","name":"relu_kernel","pid":0,"tid":"stream 7","ts":100,"dur":8,"args":{"device":0,"stream":7,"correlation":100,"external id":100,"grid":[8,1,1],"block":[256,1,1]}},
 {"ph":"X","cat":"Kernel","name":"add_part_1","pid":0,"tid":"stream 7","ts":110,"dur":5,"args":{"device":0,"correlation":101,"external id":101,"grid":[1,1,1],"block":[32,1,1]}},
 {"ph":"X","cat":"Memcpy","name":"Memcpy DtoD","pid":0,"tid":"stream 22","ts":130,"dur":2,"args":{"device":0,"stream":22,"correlation":103,"external id":103,"bytes":256}},
 {"ph":"X","cat":"Runtime","name":"cudaLaunchKernel","pid":7,"tid":7,"ts":12,"dur":3,"args":{"correlation":100,"external id":100}},
 {"ph":"X","cat":"Runtime","name":"cudaLaunchKernel","pid":7,"tid":7,"ts":42,"dur":3,"args":{"correlation":101,"external id":101}},
 {"ph":"X","cat":"Runtime","name":"cudaMemcpyAsync","pid":7,"tid":7,"ts":72,"dur":3,"args":{"correlation":103,"external id":103}}
 ]})json";
}

// et_text as schema 1.1.1 writes it, with a strided destination: 16 rows of 2 floats at pitch 4.
const std::string et_new_text = R"json({
 "schema": "1.1.1-chakra.0.0.4", "pid": 7, "nodes": [
 {"id":2,"name":"[pytorch|profiler|execution_trace|thread]","ctrl_deps":1,"inputs":{"values":[],"shapes":[],"types":[],"strides":[]},"outputs":{"values":[],"shapes":[],"types":[],"strides":[]},
  "attrs":[{"name":"rf_id","type":"uint64","value":0},{"name":"scope","type":"uint64","value":7},{"name":"tid","type":"uint64","value":1},{"name":"op_schema","type":"string","value":""}]},
 {"id":4,"name":"aten::relu","ctrl_deps":2,"inputs":{"values":[[20,50,0,32,4,"cuda:0"]],"shapes":[[16,2]],"types":["Tensor(float)"],"strides":[[4,1]]},
  "outputs":{"values":[[21,51,0,32,4,"cuda:0"]],"shapes":[[16,2]],"types":["Tensor(float)"],"strides":[[2,1]]},
  "attrs":[{"name":"rf_id","type":"uint64","value":4},{"name":"scope","type":"uint64","value":0},{"name":"tid","type":"uint64","value":1},{"name":"op_schema","type":"string","value":"aten::relu(Tensor self) -> Tensor"}]},
 {"id":5,"name":"aten::cat","ctrl_deps":2,"inputs":{"values":[[[20,50,0,32,4,"cuda:0"],[21,51,0,32,4,"cuda:0"]],0],"shapes":[[[16,2],[16,2]],[]],"types":["GenericList[Tensor(float),Tensor(float)]","Int"],"strides":[[[4,1],[2,1]],[]]},
  "outputs":{"values":[[22,52,0,64,4,"cuda:0"]],"shapes":[[64]],"types":["Tensor(float)"],"strides":[[1]]},
  "attrs":[{"name":"rf_id","type":"uint64","value":5},{"name":"scope","type":"uint64","value":0},{"name":"tid","type":"uint64","value":1},{"name":"op_schema","type":"string","value":"aten::cat(Tensor[] tensors, int dim=0) -> Tensor"}]}
 ]})json";

}  // namespace

TEST_CASE("a Kineto and ET pair gives tasks in launch order with the ranges of their operators", "[trace]") {
    const temp_dir dir;
    check_pair(import_kineto_with_et(dir.write("k.json", kineto_text), dir.write("e.json", et_text)));
}

TEST_CASE("gzip files import like plain ones", "[trace]") {
    const temp_dir dir;
    check_pair(import_trace(dir.write_gz("k.json.gz", kineto_text), dir.write_gz("e.json.gz", et_text)));
}

TEST_CASE("the 2021 dialect imports, joined by the order of calls", "[trace]") {
    const temp_dir dir;
    const recorded_trace t = import_kineto_with_et(dir.write("k.json", old_dialect()), dir.write("e.json", et_text));
    REQUIRE(t.tasks.size() == 3);
    CHECK(t.matched == 3);
    CHECK(noted(t, "order in each thread"));
    CHECK(t.tasks[1].stream == 7);  // from the row's name
    CHECK(t.tasks[1].accesses.size() == 1);
}

TEST_CASE("Kineto alone gives stream order and says so", "[trace]") {
    const temp_dir dir;
    const recorded_trace t = import_kineto(dir.write("k.json", kineto_text));
    REQUIRE(t.tasks.size() == 4);
    CHECK(t.dependencies == dependency_source::stream_order);
    CHECK(noted(t, "not data dependencies"));
    CHECK(t.tasks[1].after == std::vector<std::uint32_t>{0});
    CHECK(t.tasks[2].after == std::vector<std::uint32_t>{1});
    CHECK(t.tasks[3].after.empty());  // its stream has no earlier task, and no synchronisation was recorded
    const hazard_analysis a = analyze(t);
    CHECK(a.edges_by_kinds[edge_order] == 2);
    CHECK(a.work_us == Approx(19.25));
    CHECK(a.critical_path_us == Approx(17.25));
}

TEST_CASE("recorded synchronisation adds edges between streams where its ids are known", "[trace]") {
    const temp_dir dir;
    const auto with = [&](const std::string& sync) {
        return import_kineto(dir.write("k.json", replaced(kineto_text, " {\"name\":\"Record Window End\"",
                                                          sync + ",\n {\"name\":\"Record Window End\"")));
    };
    SECTION("a stream that waits for an event follows what was submitted before the event's record") {
        const recorded_trace t = with(
            R"({"ph":"X","cat":"cuda_runtime","name":"cudaEventRecord","pid":7,"tid":7,"ts":45,"dur":1,"args":{"correlation":200}},
 {"ph":"X","cat":"cuda_runtime","name":"cudaStreamWaitEvent","pid":7,"tid":7,"ts":50,"dur":1,"args":{"correlation":201}},
 {"ph":"X","cat":"cuda_sync","name":"Stream Wait Event","pid":0,"tid":22,"ts":101,"dur":0,"args":{"cuda_sync_kind":"Stream Wait Event","stream":22,"correlation":201,"device":0,"wait_on_stream":7,"wait_on_cuda_event_record_corr_id":200}})");
        CHECK(t.tasks[3].after == std::vector<std::uint32_t>{1});
    }
    SECTION("a device-wide wait of the host holds back every stream") {
        const recorded_trace t = with(
            R"({"ph":"X","cat":"cuda_runtime","name":"cudaDeviceSynchronize","pid":7,"tid":7,"ts":60,"dur":1,"args":{"correlation":201}},
 {"ph":"X","cat":"cuda_sync","name":"Context Sync","pid":0,"tid":0,"ts":101,"dur":0,"args":{"cuda_sync_kind":"Context Sync","correlation":201,"device":0}})");
        CHECK(t.tasks[3].after == std::vector<std::uint32_t>{2});
    }
    SECTION("a wait without ids adds nothing and is counted") {
        const recorded_trace t = with(
            R"({"ph":"X","cat":"cuda_sync","name":"Stream Wait Event","pid":0,"tid":22,"ts":60,"dur":0,"args":{"cuda_sync_kind":"Stream Wait Event","stream":22,"wait_on_stream":-1}})");
        CHECK(t.tasks[3].after.empty());
        CHECK(noted(t, "1 cuda_sync event without stream ids"));
    }
}

TEST_CASE("a kernel without a launch record is kept, ordered by its GPU start", "[trace]") {
    const temp_dir dir;
    const std::string text = replaced(kineto_text, "\"cbid\":211,\"correlation\":101", "\"cbid\":211,\"correlation\":999");
    const recorded_trace t = import_kineto_with_et(dir.write("k.json", text), dir.write("e.json", et_text));
    REQUIRE(t.tasks.size() == 4);
    CHECK(t.tasks[3].name == "add_part_1");
    CHECK_FALSE(t.tasks[3].launch_recorded);
    CHECK(t.tasks[3].submit_us == 110);
    CHECK(noted(t, "1 GPU task without a launch record"));
    CHECK(t.tasks[3].accesses_known);  // its External id still names the operator
}

TEST_CASE("a task outside every operator keeps its place in its stream", "[trace]") {
    const temp_dir dir;
    std::string text = replaced(kineto_text, "\"ts\":42,\"dur\":3,\"args\":{\"External id\":3",
                                "\"ts\":35,\"dur\":3,\"args\":{\"External id\":0");
    const recorded_trace t = import_kineto_with_et(dir.write("k.json", text), dir.write("e.json", et_text));
    REQUIRE(t.unmatched == 0);  // time says outside, the External id of the GPU event says inside
    text = replaced(text, "\"dur\":5,\"args\":{\"External id\":3", "\"dur\":5,\"args\":{\"External id\":0");
    const recorded_trace u = import_kineto_with_et(dir.write("k.json", text), dir.write("e.json", et_text));
    CHECK(u.unmatched == 1);
    CHECK_FALSE(u.tasks[1].accesses_known);
    CHECK(u.tasks[1].after == std::vector<std::uint32_t>{0});
    CHECK(u.tasks[2].after == std::vector<std::uint32_t>{1});
    CHECK(u.tasks[3].after.empty());
    CHECK(noted(u, "1 GPU task without known ranges"));
}

TEST_CASE("a record that appears twice is dropped once and counted", "[trace]") {
    const temp_dir dir;
    const std::string memcpy_event = R"({"ph":"X","cat":"gpu_memcpy","name":"Memcpy DtoD","pid":0,"tid":22,"ts":130,"dur":2,"args":{"External id":4,"device":0,"stream":22,"correlation":103,"bytes":256}})";
    const recorded_trace t =
        import_kineto(dir.write("k.json", replaced(kineto_text, memcpy_event, memcpy_event + "," + memcpy_event)));
    CHECK(t.tasks.size() == 4);
    CHECK(t.dropped == 1);
    REQUIRE(t.drop_reasons.size() == 1);
    CHECK(t.drop_reasons[0].reason == "duplicate record");
    // Another one of the same launch, at the same time, may lie between the two.
    const std::string other = replaced(memcpy_event, "\"dur\":2", "\"dur\":1");
    const recorded_trace u = import_kineto(
        dir.write("k.json", replaced(kineto_text, memcpy_event, memcpy_event + "," + other + "," + memcpy_event)));
    CHECK(u.tasks.size() == 5);
    CHECK(u.dropped == 1);
}

TEST_CASE("a number too small for double precision is 0", "[trace]") {
    const temp_dir dir;
    const std::string text = replaced(kineto_text, "\"bytes\":256", "\"bytes\":256,\"x\":1e-400");
    const recorded_trace t = import_kineto(dir.write("k.json", text));
    CHECK(t.tasks.size() == 4);
}

TEST_CASE("an execution trace alone gives hazards without durations and says so", "[trace]") {
    const temp_dir dir;
    const recorded_trace t = import_trace("", dir.write("e.json", et_text));
    REQUIRE(t.tasks.size() == 3);
    CHECK(t.tasks[1].name == "aten::add_");
    CHECK_FALSE(t.durations_known);
    CHECK_FALSE(t.tasks[0].duration_known);
    CHECK(noted(t, "without durations"));
    const hazard_analysis a = analyze(t);
    CHECK(a.edges == std::vector<hazard_edge>{{1, 0, edge_raw | edge_waw}, {2, 0, edge_raw}, {2, 1, edge_raw}});
    CHECK(a.contradicted == 0);
    CHECK(a.critical_path_us == 3);
}

TEST_CASE("views, allocations and composite operators are no tasks of an execution trace alone", "[trace]") {
    const temp_dir dir;
    const std::string more = R"json( {"name":"aten::linear","id":10,"rf_id":7,"parent":2,"scope":0,"tid":1,"op_schema":"aten::linear(Tensor input) -> Tensor","inputs":[[20,50,0,64,4,"cuda:0"]],"outputs":[[29,55,0,64,4,"cuda:0"]]},
 {"name":"aten::view","id":11,"rf_id":8,"parent":10,"scope":0,"tid":1,"op_schema":"aten::view(Tensor(a) self, SymInt[] size) -> Tensor(a)","inputs":[[20,50,0,64,4,"cuda:0"]],"outputs":[[20,50,0,64,4,"cuda:0"]]},
 {"name":"aten::empty","id":12,"rf_id":9,"parent":10,"scope":0,"tid":1,"op_schema":"aten::empty(SymInt[] size) -> Tensor","inputs":[],"outputs":[[29,55,0,64,4,"cuda:0"]]},
 {"name":"aten::mm","id":13,"rf_id":10,"parent":10,"scope":0,"tid":1,"op_schema":"aten::mm(Tensor self) -> Tensor","inputs":[[20,50,0,64,4,"cuda:0"]],"outputs":[[29,55,0,64,4,"cuda:0"]]},
 {"name":"aten::copy_","id":6)json";
    const recorded_trace t = import_execution_trace(
        dir.write("e.json", replaced(et_text, " {\"name\":\"aten::copy_\",\"id\":6", more)));
    REQUIRE(t.tasks.size() == 4);
    CHECK(t.tasks[3].name == "aten::mm");
    CHECK(t.dropped == 3);
}

TEST_CASE("the 1.1.1 attribute form is read, strides give the extent", "[trace]") {
    const temp_dir dir;
    const execution_trace et = read_execution_trace(dir.write("e.json", et_new_text), {});
    CHECK(et.schema == "1.1.1-chakra.0.0.4");
    CHECK(et.assumed_contiguous == 0);
    const recorded_trace t = import_execution_trace(dir.write("e.json", et_new_text));
    REQUIRE(t.tasks.size() == 2);
    // 15 rows of pitch 4 and two elements of the last: 62 elements of 4 bytes.
    CHECK(t.tasks[0].accesses[0].hi == 248);
    CHECK(t.tasks[0].accesses[1].hi == 128);
    REQUIRE(t.tasks[1].accesses.size() == 3);
    CHECK(t.tasks[1].accesses[0].hi == 248);
    CHECK(t.tasks[1].accesses[1].hi == 128);
    CHECK(analyze(t).edges == std::vector<hazard_edge>{{1, 0, edge_raw}});
}

TEST_CASE("a schema's exclamation mark says which arguments are written", "[trace]") {
    CHECK(written_arguments("aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)") ==
          std::vector<bool>{true, false, false});
    CHECK(written_arguments("aten::_foreach_add_(Tensor(a!)[] self, Scalar scalar) -> ()") ==
          std::vector<bool>{true, false});
    CHECK(written_arguments("aten::mm.out(Tensor self, Tensor mat2, *, Tensor(a!) out) -> Tensor(a!)") ==
          std::vector<bool>{false, false, true});
    CHECK(written_arguments("aten::to(Tensor(a) self, int[3] size=[1,1,1], str x=\"!\") -> Tensor(a)") ==
          std::vector<bool>{false, false, false});
    CHECK(written_arguments("").empty());
    CHECK(is_view_schema("aten::view(Tensor(a) self, SymInt[] size) -> Tensor(a)"));
    CHECK(is_view_schema("aten::split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]"));
    CHECK_FALSE(is_view_schema("aten::add_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)"));
    CHECK_FALSE(is_view_schema("aten::relu(Tensor self) -> Tensor"));
}
