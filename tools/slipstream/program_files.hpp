// Files that belong to the program: traces of the repository, the script that draws plots.
#pragma once
#include <filesystem>
#include <optional>

namespace slipstream::cli {

/// Looks for `name` (say "traces/x.json") in the repository that the build folder with this program lies in, and among what was
/// installed with it (<prefix>/libexec/slipstream/<file name>). Never in the current folder: what is found may be run.
std::optional<std::filesystem::path> find_program_file(const std::filesystem::path& name);

} // namespace slipstream::cli
