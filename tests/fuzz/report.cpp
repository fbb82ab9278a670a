#include "tools/slipstream/committed_result.hpp"
#include "tests/fuzz/target.hpp"

namespace slipstream::fuzz {

void report(std::string_view input)
{
    const char* why = nullptr;
    const auto parsed = cli::parse_committed_result(input, "report.json", why);
    if (!parsed) {
        claim(why != nullptr, "a refusal says why");
        return;
    }
    for (const std::string* text : {&parsed->device, &parsed->gpu, &parsed->driver, &parsed->commit, &parsed->date})
        if (!text->empty()) claim_one_line(*text);
    for (const cli::run_row& row : parsed->rows)
        if (!row.engine.empty()) claim_one_line(row.engine);
    // The table must take whatever numbers there are.
    static std::FILE* const nowhere = std::fopen("/dev/null", "w");
    claim(nowhere != nullptr, "/dev/null can be written");
    cli::print_committed_result(nowhere, *parsed);
}

} // namespace slipstream::fuzz
