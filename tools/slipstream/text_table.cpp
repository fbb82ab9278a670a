#include "tools/slipstream/text_table.hpp"
#include <algorithm>
#include <cmath>

namespace slipstream::cli {

void text_table::print(std::FILE* to, const char* indent) const
{
    std::vector<std::size_t> width;
    for (const auto& row : rows_) {
        width.resize(std::max(width.size(), row.size()));
        for (std::size_t c = 0; c < row.size(); ++c) width[c] = std::max(width[c], row[c].size());
    }
    for (const auto& row : rows_) {
        std::string line = indent;
        for (std::size_t c = 0; c < row.size(); ++c) {
            const std::string gap(width[c] - row[c].size(), ' ');
            if (c != 0) line += "  ";
            line += c == 0 ? row[c] + gap : gap + row[c];
        }
        line.erase(line.find_last_not_of(' ') + 1);
        std::fprintf(to, "%s\n", line.c_str());
    }
}

std::string microseconds(double us)
{
    if (!std::isfinite(us)) return "-";
    char text[64];
    std::snprintf(text, sizeof text, us < 100 ? "%.2f" : us < 10000 ? "%.1f" : "%.0f", us);
    return text;
}

} // namespace slipstream::cli
