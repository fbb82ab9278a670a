// Every bound of an import in one place: what a hostile or broken file may make us read, keep or nest.
#pragma once

#include <cstdint>

namespace slipstream::trace {

// Real files stay far below these (the largest public trace we know of has about 2*10^6 events and depth 8); a file
// that exceeds one is refused with an import_error that names the bound.
struct import_limits {
    std::uint64_t file_bytes_max = std::uint64_t{4} << 30;  // after decompression, so a gzip bomb ends here
    std::uint32_t read_bytes = 64u << 10;                   // taken from the file at a time; 8 or more
    std::uint64_t token_bytes_max = std::uint64_t{8} << 20; // one string, number or run of white space
    std::uint32_t depth_max = 64;                           // nested arrays and objects
    std::uint32_t element_values_max = 1u << 20;            // JSON values of one event or node
    std::uint64_t element_bytes_max = std::uint64_t{32} << 20;  // string bytes of one event or node
    std::uint64_t records_max = std::uint64_t{16} << 20;    // events or nodes kept in memory
    std::uint64_t tasks_max = std::uint64_t{1} << 20;       // GPU tasks of one trace
    std::uint64_t accesses_max = std::uint64_t{1} << 24;    // byte ranges of all tasks or nodes together
    std::uint64_t spaces_max = std::uint64_t{1} << 20;      // storages
    std::uint64_t order_edges_max = std::uint64_t{1} << 25;     // stream-order edges of a trace without ranges
    std::uint32_t name_bytes_max = 512;                     // longer names are cut, not refused
    std::uint64_t names_bytes_max = std::uint64_t{256} << 20;  // different names of operators, threads, devices together
    // A body cannot be interrupted, and on a GPU it is made to take the recorded time. Collectives wait for minutes.
    double task_us_max = 600e6;
};

// What one task can move, and where a tensor can end: beyond any memory there is (CUDA's addresses have 49 bits). Sums over
// the tasks of a trace fit in 64 bits.
inline constexpr std::uint64_t task_bytes_max = std::uint64_t{1} << 43;
inline constexpr std::uint64_t tensor_end_max = std::uint64_t{1} << 49;
static_assert(task_bytes_max <= UINT64_MAX / import_limits{}.tasks_max);

}  // namespace slipstream::trace
