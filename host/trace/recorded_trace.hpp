// The model of one recorded run: GPU tasks in submission order, with what they touched or what they waited for.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace slipstream::trace {

// A half-open byte range of one space. Spaces never overlap each other.
struct byte_access {
    std::uint32_t space = 0;  // dense id, an index into recorded_trace::spaces
    std::uint64_t lo = 0;     // bytes, inclusive
    std::uint64_t hi = 0;     // bytes, exclusive; lo >= hi touches nothing
    bool reads = false;
    bool writes = false;

    friend bool operator==(const byte_access&, const byte_access&) = default;
};

enum class task_kind : std::uint8_t {
    kernel,
    memcpy,
    memset,
    op,  // an operator of an execution trace alone: the kernels it launched are not known
};

struct recorded_task {
    std::string name;
    task_kind kind = task_kind::kernel;
    double submit_us = 0;    // start of the launch call; GPU start when the trace has no launch record
    double start_us = 0;     // GPU start; 0 when unknown
    double duration_us = 0;  // 0 when unknown
    bool duration_known = false;      // false: duration_us must be made up by the caller, and said to be
    bool launch_recorded = false;     // false: submit_us is a fall-back
    bool accesses_known = false;      // false: `accesses` is empty because nothing is known, see `after`
    bool bytes_known = false;         // false: moved_bytes is an assumption, to be reported as one
    std::uint32_t device = 0;
    std::uint32_t stream = 0;         // the recorded stream id; unique together with `device`
    std::array<std::uint32_t, 3> grid{1, 1, 1};
    std::array<std::uint32_t, 3> block{1, 1, 1};
    std::uint32_t shared_bytes = 0;   // static + dynamic, per block
    std::uint64_t moved_bytes = 0;    // memcpy/memset: recorded; kernels: sum of the declared ranges
    std::vector<byte_access> accesses;  // sorted by (space, lo, hi), no two with the same range
    std::vector<std::uint32_t> after;   // explicit predecessors, ascending, each smaller than this task's index
};

enum class dependency_source : std::uint8_t {
    data,          // byte ranges: hazards follow from `accesses`
    stream_order,  // no ranges in the input: `after` repeats the order that streams and synchronisation imposed
};

struct recorded_space {
    std::uint64_t storage_id = 0;  // as recorded
    std::string device;            // as recorded, for example "cuda:0"
    std::uint64_t bytes = 0;       // largest end of any recorded range
};

struct drop_count {
    std::string reason;
    std::uint64_t count = 0;
};

struct recorded_trace {
    std::vector<recorded_task> tasks;  // submission order
    std::vector<recorded_space> spaces;
    dependency_source dependencies = dependency_source::stream_order;
    bool durations_known = false;
    // data, with Kineto: tasks whose operator and ranges were found, and those whose were not.
    // data, ET alone: all operators that count as tasks, and 0. stream_order: tasks with a launch record, and without.
    std::uint64_t matched = 0;
    std::uint64_t unmatched = 0;
    std::uint64_t dropped = 0;  // GPU records (ET alone: operators) that did not become tasks; sum of drop_reasons
    std::vector<drop_count> drop_reasons;
    std::vector<std::string> notes;  // for people: one sentence each, meant to be printed
};

}  // namespace slipstream::trace
