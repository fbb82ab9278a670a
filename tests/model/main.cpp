// The entry point of the model tests: Catch2's, or the mutation command (mutations.cpp) for `model_tests mutations ...`.
#define CATCH_CONFIG_RUNNER
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_session.hpp>
#else
#include <catch2/catch.hpp>
#endif
#include "tests/model/mutations.hpp"
#include <cstring>

namespace {
int run_catch(int count, const char* const* arguments) { return Catch::Session().run(count, arguments); }
} // namespace

int main(int count, char** arguments)
{
    if (count > 1 && std::strcmp(arguments[1], "mutations") == 0)
        return slipstream::model::run_mutations(count - 2, arguments + 2, run_catch);
    return run_catch(count, arguments);
}
