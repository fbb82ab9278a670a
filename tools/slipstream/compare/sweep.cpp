#include "tools/slipstream/compare/sweep.hpp"
#include "tools/slipstream/usage_error.hpp"
#include <algorithm>
#include <charconv>
#include <cmath>

namespace slipstream::cli {
namespace {

// A point's tasks one after another take about this long, at 3 us of overhead each: 8 engines with 5 runs each need a second.
constexpr double point_us = 60'000;
constexpr double overhead_us = 3;
constexpr double tasks_min = 10; // layers, at least: fewer are all start and end
constexpr double tasks_max = 2000;
constexpr double cells_of_a_lane = 128; // half of them in the row: pieces of 16 cells

std::string text_of(double value)
{
    char text[32];
    std::snprintf(text, sizeof text, "%.12g", value);
    return text;
}

double number_of(const workloads::parameters& values, const char* name, double otherwise)
{
    const auto it = values.find(name);
    if (it == values.end()) return otherwise;
    double out = otherwise;
    std::from_chars(it->second.data(), it->second.data() + it->second.size(), out); // a bad number is the workload's to refuse
    return out;
}

std::string axis_names()
{
    std::string out;
    for (const sweep_axis& axis : sweep_axes()) out += std::string(axis.name) + ", ";
    return out + "all";
}

std::vector<double> parse_values(const std::string& where, const std::string& text)
{
    std::vector<double> out;
    for (std::size_t from = 0; from <= text.size();) {
        const std::size_t comma = std::min(text.find(',', from), text.size());
        double value = 0;
        const auto [end, problem] = std::from_chars(text.data() + from, text.data() + comma, value);
        if (problem != std::errc{} || end != text.data() + comma || !std::isfinite(value) || value < 0
            || (!out.empty() && value <= out.back()))
            throw usage_error(where + ": the values must be ascending numbers, as in length=1,10,100");
        out.push_back(value);
        from = comma + 1;
    }
    return out;
}

} // namespace

std::span<const sweep_axis> sweep_axes()
{
    static const sweep_axis axes[] = {
        {"length", "task length, us", "work_us", {1, 2, 5, 10, 20, 50, 100, 200, 500}},
        {"width", "width, tasks of a layer", "width", {1, 2, 4, 8, 16, 32, 64, 128}},
        {"fan-in", "fan-in, reads of a task", "fan_in", {0, 1, 2, 3, 4, 6, 8}},
        {"window", "window, tasks in flight", nullptr, {16, 32, 64, 128, 256, 512, 1024}},
    };
    return axes;
}

std::vector<sweep_axis> parse_sweep(const std::string& text)
{
    const std::span<const sweep_axis> axes = sweep_axes();
    if (text == "all") return {axes.begin(), axes.end()};
    const std::string where = "--sweep " + text;
    const std::size_t equals = text.find('=');
    for (const sweep_axis& axis : axes) {
        if (text.substr(0, equals) != axis.name) continue;
        sweep_axis out = axis;
        if (equals != std::string::npos) out.values = parse_values(where, text.substr(equals + 1));
        if (out.parameter == nullptr)
            for (const double value : out.values)
                if (value < 16 || value > 4096 || value != std::floor(value))
                    throw usage_error(where + ": a window is a whole number from 16 to 4096");
        return {out};
    }
    throw usage_error(where + ": unknown sweep; use one of " + axis_names() + ", or AXIS=V,V,... for values of your own");
}

subject layered_dag()
{
    subject out =
        parse_subject("random-dag:handles=1,partial=0,tiles=0,whole=0,no_access=0,after=0,work_spread=0,blocks=1,width=32");
    out.title = "layered DAG";
    return out;
}

sweep_point point_of(const subject& s, const sweep_axis& axis, double value, u32 window, u64 tasks)
{
    sweep_point out{s.values, window};
    if (axis.parameter == nullptr) {
        out.window = static_cast<u32>(value);
    } else {
        const auto it = out.values.find(axis.parameter);
        if (it == out.values.end())
            throw usage_error("--sweep " + std::string(axis.name) + ": " + s.workload->name + " has no parameter " + axis.parameter
                              + "; sweep another axis or another workload");
        it->second = text_of(value);
    }
    const auto fixed = [&](const std::string& name) {
        return std::any_of(s.given.begin(), s.given.end(), [&](const std::string& g) { return g.starts_with(name + "="); });
    };
    const double width = number_of(out.values, "width", 1);
    if (const auto it = out.values.find("cells"); it != out.values.end() && !fixed("cells"))
        it->second = text_of(cells_of_a_lane * width);
    if (const auto it = out.values.find("tasks"); it != out.values.end() && !fixed("tasks")) {
        const double affordable = std::min(point_us / (number_of(out.values, "work_us", 0) + overhead_us), tasks_max);
        it->second = text_of(tasks != 0 ? static_cast<double>(tasks) : std::floor(std::max(affordable, tasks_min * width)));
    }
    return out;
}

} // namespace slipstream::cli
