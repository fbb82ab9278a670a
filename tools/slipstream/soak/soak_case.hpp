// One case of a soak: an engine of some sizes and a stream of tasks, both drawn from numbers that its text names.
#pragma once
#include <chrono>
#include <slipstream/abi/portable.hpp>
#include <string>

namespace slipstream::soak {

/// What streams are made of: shares of 65536.
struct stream_style {
    const char* name;
    u32 raw_log2_min, raw_log2_max; ///< cells that raw ranges and tiles are drawn from, 2^n
    u32 length_max;                 ///< cells of a range
    u32 join, tile, listed;         ///< of tasks; the others have two ranges
    u32 handle;                     ///< of accesses, by registered handle
    u32 after;                      ///< of tasks: name up to three earlier ones
    u32 many;                       ///< likewise: up to 1024 accesses, or as many `after`
    u32 whole;                      ///< likewise: whole memory
    u32 blocks;                     ///< likewise: several blocks
    u32 rows;                       ///< likewise: begin a row of brief tasks of several blocks
    u32 spin;                       ///< likewise: slow ones, a few of them very
    u32 fail;                       ///< likewise
};
/// light, dense, tiles, handles, wide, rows, failing, mixed.
inline constexpr u32 styles = 8;
const stream_style& style_of(u32 index);

/// Of a stream, at most: the result words of all its tasks are told apart by 22 bits of a task's key (soak_key).
inline constexpr u32 stream_tasks_max = 261'632;

struct soak_case {
    u64 seed = 1;      ///< of the stream; stream b of a case has seed + b
    u32 style = 0;
    u32 tasks = 2000;  ///< of the whole stream
    u32 from = 0;      ///< tasks before this one are left out ...
    u32 keep = ~0u;    ///< ... and those from from + keep on
    u32 window = 256;
    u32 ring = 1024;
    u32 threads = 1;   ///< that submit, each with its ring
    u32 per_sm = 1;    ///< workers on an SM
    u32 parts = 1;     ///< of the engine (config::parts)
    u32 placement = 0; ///< of several: seed of what lies in which; 0: short pieces in turn
    u32 workers = 2;   ///< of the host device
    u32 residency_ms = 200;
    u32 parks = 0;     ///< 1: pause() and resume() at random points
    u32 staging = 1;
    u32 chaining = 1;
    u32 bypass = 1;
    u32 broadcast = 1;
    u64 start = 0;     ///< position of the first ring slot and of the first task
    u32 hide = 0;      ///< 1, 2, 3: a task hides the access that a RAW, WAR, WAW needs

    /// key=value,...: read() gives the same case again.
    std::string text() const;
    /// Throws config_error with the keys there are.
    static soak_case read(const std::string& text);
    /// With several parts: as few threads, and sizes and positions as usual, as such an engine has.
    void fit();
};

inline constexpr u32 drawn_parts_max = 5;
/// Case `number` of the soak with this seed, of a style; its streams have the usual number of tasks. A third of the
/// cases have several parts.
soak_case draw_case(u64 seed, u32 number, u32 style);

/// "RAW", "WAR", "WAW" -> 1, 2, 3; anything else 0.
u32 hazard_of(const std::string& name);

} // namespace slipstream::soak
