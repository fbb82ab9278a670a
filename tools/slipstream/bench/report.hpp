// Figures as a table and as JSON.
#pragma once
#include "tools/slipstream/bench/figure.hpp"
#include "tools/slipstream/json_report.hpp"

namespace slipstream::bench {

void print_figures(std::FILE* to, const std::vector<figure>& figures);
/// `"figures": [...]`.
void write_figures(cli::json_writer& w, const std::vector<figure>& figures);
/// The members of one of them.
void write_figure(cli::json_writer& w, const figure& f);
/// Three significant digits, "-" for no number.
std::string number_text(double value);

} // namespace slipstream::bench
