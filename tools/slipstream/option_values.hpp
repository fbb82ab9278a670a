// Options that take numbers, with their bounds, and what no option takes.
#pragma once
#include <CLI/CLI.hpp>
#include <slipstream/abi/portable.hpp>
#include <string>

namespace slipstream::cli {

struct whole_range {
    u64 low, high;
    const char* zero = ""; ///< what 0 stands for, where it is no number like the others
};

struct number_range {
    double low, high;
    bool above = false; ///< low itself is no such number
    const char* zero = "";
};

/// The number that `text` is, in decimal digits and nothing else. Throws usage_error with what was typed and the bounds. CLI11 by
/// itself takes -1 for 2^64 - 1, and 010 for 8.
u64 whole_number(const std::string& option, const std::string& text, const whole_range& range);
double any_number(const std::string& option, const std::string& text, const number_range& range);

/// An option of a whole number; help shows its default, unless that is a 0 which stands for something else.
template <class Number>
CLI::Option* add_whole(CLI::App& app, const std::string& option, Number& value, const whole_range& range, const std::string& what)
{
    const CLI::callback_t read = [option, &value, range](const CLI::results_t& given) {
        value = static_cast<Number>(whole_number(option, given.front(), range));
        return true;
    };
    CLI::Option* const out = app.add_option(option, read, what)->type_name("UINT");
    return value == 0 && *range.zero != '\0' ? out : out->default_str(std::to_string(value));
}
CLI::Option* add_number(CLI::App& app, const std::string& option, double& value, const number_range& range,
                        const std::string& what);

/// An option whose value is missing would take the next option for it: no value begins with "--". Nor is one empty, as that of
/// a variable that nobody set: the option would count as not given.
void refuse_missing_values(CLI::App& app);

} // namespace slipstream::cli
