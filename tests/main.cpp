// The entry point of a Catch2 test program, versions 2 and 3 alike, and of the command that it may have beside its tests.
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_session.hpp>
#else
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>
#endif
#include "tests/command.hpp"
#include <cstring>

namespace {
int run_catch(int count, const char* const* arguments) { return Catch::Session().run(count, arguments); }
} // namespace

int main(int count, char** arguments)
{
    const slipstream::test_command* const own = slipstream::own_command;
    if (own && count > 1 && std::strcmp(arguments[1], own->name) == 0) return own->run(count - 2, arguments + 2, run_catch);
    return run_catch(count, arguments);
}
