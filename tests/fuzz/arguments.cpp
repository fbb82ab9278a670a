#include "tests/fuzz/target.hpp"
#include "tools/slipstream/compare/subject.hpp"
#include "tools/slipstream/compare/sweep.hpp"
#include "tools/slipstream/usage_error.hpp"
#include "tools/slipstream/workload_choice.hpp"
#include "workloads/parameters.hpp"
#include <cmath>
#include <slipstream/status.hpp>
#include <vector>

namespace slipstream::fuzz {
namespace {

template <class Parse>
void refused_or_parsed(Parse parse)
{
    try {
        parse();
    } catch (const cli::usage_error& e) {
        claim(std::string_view(e.what()).find(": ") != std::string_view::npos, "a refusal says of what, and why");
    } catch (const config_error& e) {
        claim(*e.what() != '\0', "a refusal says why");
    }
}

} // namespace

void arguments(std::string_view input)
{
    std::vector<std::string> lines;
    for (std::size_t from = 0; from <= input.size() && lines.size() < 8;) {
        const std::size_t end = std::min(input.find('\n', from), input.size());
        lines.emplace_back(input.substr(from, end - from));
        from = end + 1;
    }
    for (const std::string& line : lines) {
        if (line.find('\0') != std::string::npos) continue; // a command line cannot hold it
        refused_or_parsed([&] {
            for (const cli::sweep_axis& axis : cli::parse_sweep(line)) {
                double last = -1;
                for (const double value : axis.values) {
                    claim(std::isfinite(value) && value > last, "a sweep's values ascend");
                    last = value;
                    (void)cli::point_of(cli::layered_dag(), axis, value, 256, 0);
                }
            }
        });
        refused_or_parsed([&] {
            const cli::subject s = cli::parse_subject(line);
            claim(s.workload != nullptr || (!s.kineto.empty() && !s.et.empty()), "a subject is a workload or two files");
            if (s.workload == nullptr) return;
            const workloads::parameter_reader reader("fuzz", s.workload->defaults, s.values);
            for (const auto& parameter : s.values) {
                const std::string& name = parameter.first; // clang before 16 lets no lambda use a structured binding
                refused_or_parsed([&] { claim(reader.whole(name, 3, 1000) - 3 <= 997, "a whole number lies in its bounds"); });
                refused_or_parsed([&] {
                    const double number = reader.number(name, -2.5, 1e6);
                    claim(number >= -2.5 && number <= 1e6, "a number lies in its bounds");
                });
            }
        });
    }
}

} // namespace slipstream::fuzz
