// Hand-made trace files for the tests: a temporary directory, gzip, and the smallest well-formed Kineto and ET pair.
#pragma once

#include <zlib.h>

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

#include "host/trace/import_error.hpp"

namespace trace_test {

class temp_dir {
public:
    temp_dir() {
        std::string pattern = (std::filesystem::temp_directory_path() / "slipstream-trace-XXXXXX").string();
        if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
        path_ = pattern;
    }
    ~temp_dir() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    temp_dir(const temp_dir&) = delete;
    temp_dir& operator=(const temp_dir&) = delete;

    std::string path() const { return path_.string(); }
    std::string write(const std::string& name, const std::string& text) const {
        const std::string file = (path_ / name).string();
        std::ofstream(file, std::ios::binary) << text;
        return file;
    }
    std::string write_gz(const std::string& name, const std::string& text) const {
        const std::string file = (path_ / name).string();
        gzFile gz = gzopen(file.c_str(), "wb");
        gzwrite(gz, text.data(), static_cast<unsigned>(text.size()));
        gzclose(gz);
        return file;
    }

private:
    std::filesystem::path path_;
};

inline std::string read_all(const std::string& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

inline std::string replaced(std::string text, const std::string& from, const std::string& to) {
    const std::size_t at = text.find(from);
    if (at == std::string::npos) throw std::logic_error("the test's text to replace is not there: " + from);
    return text.replace(at, from.size(), to);
}

inline bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// The message of the import_error that `run` must throw, "" when it throws none. Other exceptions pass through.
template <class Run>
std::string error_of(Run run) {
    try {
        run();
    } catch (const slipstream::trace::import_error& e) {
        return e.what();
    }
    return {};
}

// Three operators launch four GPU tasks: relu (a kernel), add_ (two kernels), copy_ (a memcpy on stream 22).
// Times in us; ids as newer files have them: External id links GPU events to operators, Record function id to the ET.
inline const std::string kineto_text = R"json({
 "schemaVersion": 1, "deviceProperties": [{"id": 0, "numSms": 132}], "traceEvents": [
 {"ph":"M","name":"process_name","pid":7,"tid":0,"ts":1,"args":{"name":"python"}},
 {"ph":"X","cat":"user_annotation","name":"ProfilerStep#1","pid":7,"tid":7,"ts":1,"dur":500,"args":{"External id":1}},
 {"ph":"X","cat":"cpu_op","name":"aten::relu","pid":7,"tid":7,"ts":10.5,"dur":20,"args":{"External id":2,"Record function id":4}},
 {"ph":"X","cat":"cpu_op","name":"aten::add_","pid":7,"tid":7,"ts":40,"dur":20,"args":{"External id":3,"Record function id":5}},
 {"ph":"X","cat":"cpu_op","name":"aten::copy_","pid":7,"tid":7,"ts":70,"dur":20,"args":{"External id":4,"Record function id":6}},
 {"ph":"X","cat":"kernel","name":"add_part_2","pid":0,"tid":7,"ts":120,"dur":4,"args":{"External id":3,"device":0,"stream":7,"correlation":102,"shared memory":64,"grid":[3,2,1],"block":[128,1,1]}},
 {"ph":"X","cat":"kernel","name":"relu_kernel","pid":0,"tid":7,"ts":100,"dur":8.25,"args":{"External id":2,"device":0,"stream":7,"correlation":100,"shared memory":0,"grid":[8,1,1],"block":[256,1,1]}},
 {"ph":"X","cat":"kernel","name":"add_part_1","pid":0,"tid":7,"ts":110,"dur":5,"args":{"External id":3,"device":0,"stream":7,"correlation":101,"shared memory":0,"grid":[1,1,1],"block":[32,1,1]}},
 {"ph":"X","cat":"gpu_memcpy","name":"Memcpy DtoD","pid":0,"tid":22,"ts":130,"dur":2,"args":{"External id":4,"device":0,"stream":22,"correlation":103,"bytes":256}},
 {"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":7,"tid":7,"ts":12,"dur":3,"args":{"External id":2,"cbid":211,"correlation":100}},
 {"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":7,"tid":7,"ts":42,"dur":3,"args":{"External id":3,"cbid":211,"correlation":101}},
 {"ph":"X","cat":"cuda_driver","name":"cuLaunchKernel","pid":7,"tid":7,"ts":47,"dur":3,"args":{"External id":3,"cbid":307,"correlation":102}},
 {"ph":"X","cat":"cuda_runtime","name":"cudaMemcpyAsync","pid":7,"tid":7,"ts":72,"dur":3,"args":{"External id":4,"cbid":41,"correlation":103}},
 {"name":"Record Window End","ph":"i","s":"g","pid":"","tid":"","ts":600}
 ]})json";

// The same run: relu reads storage 50 [0,256) and writes 51 [0,256); add_ updates 51 [64,192); copy_ reads 51, writes 52.
inline const std::string et_text = R"json({
 "schema": "1.0.1", "pid": 7, "time": "now", "start_ts": 1, "nodes": [
 {"name":"[pytorch|profiler|execution_graph|thread]","id":2,"rf_id":0,"parent":1,"scope":7,"tid":1,"op_schema":"","inputs":[],"input_shapes":[],"outputs":[],"output_shapes":[]},
 {"name":"aten::relu","id":4,"rf_id":4,"parent":2,"scope":0,"tid":1,"op_schema":"aten::relu(Tensor self) -> Tensor",
  "inputs":[[20,50,0,64,4,"cuda:0"]],"input_shapes":[[64]],"outputs":[[21,51,0,64,4,"cuda:0"]],"output_shapes":[[64]]},
 {"name":"aten::add_","id":5,"rf_id":5,"parent":2,"scope":0,"tid":1,"op_schema":"aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)",
  "inputs":[[22,51,16,32,4,"cuda:0"],[23,60,0,1,8,"cpu"],1],"input_shapes":[[32],[1],[]],"outputs":[[22,51,16,32,4,"cuda:0"]],"output_shapes":[[32]]},
 {"name":"aten::copy_","id":6,"rf_id":6,"parent":2,"scope":0,"tid":1,"op_schema":"aten::copy_(Tensor(a!) self, Tensor src, bool non_blocking=False) -> Tensor(a!)",
  "inputs":[[24,52,0,64,4,"cuda:0"],[21,51,0,64,4,"cuda:0"],false],"input_shapes":[[64],[64],[]],"outputs":[[24,52,0,64,4,"cuda:0"]],"output_shapes":[[64]]}
 ], "finish_ts": 2})json";

}  // namespace trace_test
