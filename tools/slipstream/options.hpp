// What the command line asked for.
#pragma once
#include <slipstream/abi/portable.hpp>
#include <string>
#include <vector>

namespace slipstream::cli {

struct options {
    std::string device = "auto";
    std::string engine = "all"; ///< as given: names separated by commas, or "all"
    u32 window = 256;
    u32 ring = 1024;
    u32 workers_per_sm = 1;
    u32 parts = 1; ///< of the slipstream engine
    bool staging = true;
    bool chaining = true;
    bool bypass = true;
    bool broadcast = true;
    u32 repeat = 11;
    u64 seed = 1;
    std::string json; ///< "": no JSON; "-": stdout
    bool analyze = false;
    std::string timeline;        ///< replay, run: "": none
    u32 timeline_entries = 4096; ///< of each worker
    std::string break_kind; ///< hidden, for tests: RAW, WAR or WAW

    std::string kineto, et;                ///< replay
    std::string mode = "back-to-back";     ///< replay: or preloaded, paced
    std::string workload;                  ///< run
    std::vector<std::string> parameters;   ///< run: NAME=VALUE
    bool list = false;                     ///< run
    std::vector<std::string> subjects;     ///< compare
    bool suite = false;                    ///< compare
    std::string seeds;                     ///< compare: as given, "" for `seed`
    std::vector<std::string> sweeps;       ///< compare
    std::string plots;                     ///< compare: a folder; "": none
    std::string benchmark;                 ///< bench
    u64 tasks = 0;                         ///< bench: of the smaller run of a slope; compare: of a sweep's points.
                                           ///< 0: as many as time allows
    double seconds = 2;                    ///< bench: measuring time of one figure
    u32 width = 8;                         ///< bench fan: readers
    std::string pattern = "stencil_1d";    ///< bench metg: or all
    std::string bench_engines;             ///< bench metg: as given; "": those it is about
    u32 buffers = 2;                       ///< bench metg: outputs of a point; 0: one for each step
    bool lose_a_task = false;              ///< bench; hidden, for tests
    bool slow_streams = false;             ///< bench guard; hidden, for tests
    std::vector<std::string> bench_given;  ///< bench: which flags were given, by their first names; hidden ones are not in it
    u64 soak_tasks = 0;                    ///< soak: 0: as many as time allows
    double soak_seconds = 0;               ///< soak: 0: as long as the tasks take
    u32 stream_tasks = 0;                  ///< soak: of a stream; 0: what suits the device
    std::string style;                     ///< soak: of all streams; "": each in turn
    std::string soak_case;                 ///< soak: run this one again and again
    u64 start_position = 0;                ///< soak: of every case, if given
    bool start_given = false;

    std::string command_line; ///< for reports
};

} // namespace slipstream::cli
