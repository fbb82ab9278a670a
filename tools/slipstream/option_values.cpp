#include "tools/slipstream/option_values.hpp"
#include "tools/slipstream/usage_error.hpp"
#include <charconv>

namespace slipstream::cli {
namespace {

template <class Number> bool parse(const std::string& text, Number& value)
{
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
    return problem == std::errc{} && end == text.data() + text.size();
}

std::string text_of(double value)
{
    char text[32];
    std::snprintf(text, sizeof text, "%.12g", value);
    return text;
}

[[noreturn]] void refuse(const std::string& option, const std::string& text, const std::string& wanted, const char* zero)
{
    throw usage_error(option + " " + (text.empty() ? "''" : text) + ": give " + wanted
                      + (*zero != '\0' ? " (0: " + std::string(zero) + ")" : ""));
}

} // namespace

u64 whole_number(const std::string& option, const std::string& text, const whole_range& range)
{
    u64 value = 0;
    if (!parse(text, value) || value < range.low || value > range.high)
        refuse(option, text, "a whole number from " + std::to_string(range.low) + " to " + std::to_string(range.high), range.zero);
    return value;
}

double any_number(const std::string& option, const std::string& text, const number_range& range)
{
    double value = 0;
    if (!parse(text, value) || !(value >= range.low && value <= range.high) || (range.above && value == range.low))
        refuse(option, text,
               range.above ? "a number above " + text_of(range.low) + " and up to " + text_of(range.high)
                           : "a number from " + text_of(range.low) + " to " + text_of(range.high),
               range.zero);
    return value;
}

CLI::Option* add_number(CLI::App& app, const std::string& option, double& value, const number_range& range, const std::string& what)
{
    const CLI::callback_t read = [option, &value, range](const CLI::results_t& given) {
        value = any_number(option, given.front(), range);
        return true;
    };
    CLI::Option* const out = app.add_option(option, read, what)->type_name("FLOAT");
    return value == 0 && *range.zero != '\0' ? out : out->default_str(text_of(value));
}

void refuse_missing_values(CLI::App& app)
{
    for (CLI::Option* const option : app.get_options()) {
        if (option->get_positional() || option->get_items_expected_max() == 0) continue;
        // Numbers, and options with a default, say by themselves what they want.
        const bool may_be_empty = option->get_type_name() != "TEXT" || !option->get_default_str().empty();
        option->check([name = option->get_name(), may_be_empty](const std::string& value) -> std::string {
            if (value.starts_with("--") || (value.empty() && !may_be_empty)) throw usage_error(name + ": needs a value");
            return {};
        });
    }
}

} // namespace slipstream::cli
