#include "tools/slipstream/compare/plots.hpp"
#include "tools/slipstream/program_files.hpp"
#include "tools/slipstream/usage_error.hpp"
#include <cstring>
#include <spawn.h>
#include <spdlog/spdlog.h>
#include <sys/wait.h>
#include <unistd.h>

namespace slipstream::cli {
namespace {

constexpr int exit_no_matplotlib = 3; ///< of tools/plot
constexpr int exit_not_started = 127;

int exit_code_of(const std::string& program, const std::string& json_file, const std::string& folder)
{
    std::string words[] = {program, json_file, "--out", folder};
    char* arguments[] = {words[0].data(), words[1].data(), words[2].data(), words[3].data(), nullptr};
    pid_t child = 0;
    if (posix_spawn(&child, program.c_str(), nullptr, nullptr, arguments, environ) != 0) return exit_not_started;
    int status = 0;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR) return exit_not_started;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

} // namespace

void make_plots_folder(const std::string& folder)
{
    std::error_code failed;
    std::filesystem::create_directories(folder, failed);
    if (failed || access(folder.c_str(), W_OK) != 0)
        throw usage_error("--plots " + folder + ": cannot be written (" + (failed ? failed.message() : std::strerror(errno))
                          + "); name a folder that you may write to");
}

bool draw_plots(const std::string& json_file, const std::string& folder)
{
    const auto script = find_program_file("tools/plot");
    const int code = script ? exit_code_of(script->string(), json_file, folder) : exit_not_started;
    if (code == exit_no_matplotlib || code == exit_not_started)
        spdlog::warn("the plots were not drawn; on a machine with the repository and Python 3 with matplotlib (Debian, Ubuntu: "
                     "python3-matplotlib) run: tools/plot {} --out {}",
                     json_file, folder);
    else if (code != 0)
        spdlog::error("{} {} --out {} ended with {}; what it said stands above", script->string(), json_file, folder, code);
    return code == 0 || code == exit_no_matplotlib || code == exit_not_started;
}

} // namespace slipstream::cli
