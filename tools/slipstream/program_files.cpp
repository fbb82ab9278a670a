#include "tools/slipstream/program_files.hpp"

namespace slipstream::cli {

std::optional<std::filesystem::path> find_program_file(const std::filesystem::path& name)
{
    std::error_code failed;
    const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", failed);
    if (failed) return {};
    const std::filesystem::path prefix = program.parent_path().parent_path(); // the build folder, or where it was installed
    for (const auto& candidate : {prefix.parent_path() / name, prefix / "libexec" / "slipstream" / name.filename()})
        if (std::filesystem::exists(candidate, failed)) return candidate;
    return {};
}

} // namespace slipstream::cli
