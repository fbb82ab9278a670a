// Hands a comparison's JSON to the script that draws it.
#pragma once
#include <string>

namespace slipstream::cli {

/// Makes the folder of --plots. Throws usage_error when it cannot be.
void make_plots_folder(const std::string& folder);

/// Runs `tools/plot FILE --out FOLDER`. Where the script is not found or has no matplotlib, says which command draws them, and
/// returns true: the numbers are there. False: the script failed.
bool draw_plots(const std::string& json_file, const std::string& folder);

} // namespace slipstream::cli
