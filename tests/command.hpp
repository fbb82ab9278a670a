// A command that a test program has beside its tests: `PROGRAM NAME ...` runs it instead of Catch2.
#pragma once

namespace slipstream {

/// Runs Catch2 on the arguments; once in a process.
using catch_runner = int (*)(int count, const char* const* arguments);

struct test_command {
    const char* name;
    /// arguments behind the name; returns the exit code
    int (*run)(int count, const char* const* arguments, catch_runner run_catch);
};

/// Set before main, by the file that has the command; not more than one in a program.
inline const test_command* own_command = nullptr;

} // namespace slipstream
