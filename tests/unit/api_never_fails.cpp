// Bodies that are noexcept, which promises that they never fail: of whatever form they are they compile, and who breaks the promise
// ends the process.
#include <catch2/catch.hpp>
#include <csignal>
#include <slipstream/kernel_image.hpp>
#include <sys/wait.h>
#include <unistd.h>

namespace slipstream::tests {
namespace {

struct may_fail {
    u32 code;
    template <class Block> SLIPSTREAM_BODY void operator()(Block& block) const { block.fail(code); }
};
struct breaks_its_promise {
    static constexpr const char* name = "breaks";
    u32 code;
    template <class Block> SLIPSTREAM_BODY void operator()(Block& block) const noexcept { block.fail(code); }
};

// What compiles without noexcept compiles with it.
struct for_host_blocks_alone {
    template <class Block>
        requires std::is_same_v<Block, host_block>
    void operator()(Block&) const noexcept
    {
    }
};
struct by_type {
    template <class Block> SLIPSTREAM_BODY void operator()(Block& block) const noexcept
    {
        if constexpr (!std::is_same_v<Block, host_block>) block.what_no_host_block_has();
    }
};
struct overloaded {
    void operator()(host_block&) const noexcept {}
    template <class Block> SLIPSTREAM_BODY void operator()(Block& block) const { block.what_no_host_block_has(); }
};
template <class Block> struct lanes;
template <> struct lanes<host_block> {
    static constexpr u32 count = 1;
};
struct by_trait {
    u32 x;
    template <class Block> SLIPSTREAM_BODY void operator()(Block&) const noexcept { static_cast<void>(lanes<Block>::count); }
};

static_assert(!never_fails<may_fail, host_block>());
static_assert(never_fails<breaks_its_promise, host_block>());
static_assert(never_fails<for_host_blocks_alone, host_block>() && never_fails<by_type, host_block>());
static_assert(never_fails<overloaded, host_block>() && never_fails<by_trait, host_block>());
static_assert(!never_fails<for_host_blocks_alone, int>()); // no body for such blocks

template <class T>
u32 failure_of(const T& task)
{
    host_block block(0, 1, nullptr, 0);
    detail::run_on_host<T>(&task, block);
    return block.failure();
}

} // namespace

TEST_CASE("a body that is noexcept may have any form, and does not fail by fail(0)", "[api]")
{
    CHECK(failure_of(may_fail{3}) == 3);
    CHECK(failure_of(breaks_its_promise{0}) == 0);
    CHECK(failure_of(for_host_blocks_alone{}) == 0);
    CHECK(failure_of(by_type{}) == 0);
    CHECK(failure_of(overloaded{}) == 0);
    CHECK(failure_of(by_trait{1}) == 0);
}

TEST_CASE("a body that is noexcept and fails all the same ends the process, and says so", "[api]")
{
    int out[2];
    REQUIRE(pipe(out) == 0);
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        std::signal(SIGABRT, SIG_DFL);
        dup2(out[1], STDERR_FILENO);
        static_cast<void>(failure_of(breaks_its_promise{7}));
        _exit(0);
    }
    close(out[1]);
    std::string said;
    char text[256];
    for (ssize_t n; (n = read(out[0], text, sizeof text)) > 0;) said.append(text, static_cast<std::size_t>(n));
    close(out[0]);
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK((WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT));
    CHECK(said.find("the body of breaks is noexcept") != std::string::npos);
    CHECK(said.find("fail(7)") != std::string::npos);
}

} // namespace slipstream::tests
