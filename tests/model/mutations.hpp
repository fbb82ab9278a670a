// The mutation command: `model_tests mutations` finds for every edge of device/edge.hpp, weakened in every way that applies to it,
// a search of the model tests that turns red.
#pragma once

namespace slipstream::model {

/// Runs Catch2 on the arguments; called in forked processes only, once in each.
using catch_runner = int (*)(int count, const char* const* arguments);

/// Returns the exit code: 0 if every mutant was killed or is an accepted survivor, 1 if not, 2 for wrong arguments.
int run_mutations(int count, const char* const* arguments, catch_runner run_catch);

} // namespace slipstream::model
