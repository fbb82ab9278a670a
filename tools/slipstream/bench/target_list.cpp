#include "tools/slipstream/bench/target_list.hpp"
#include <cmath>
#include <limits>
#include <spdlog/spdlog.h>

namespace slipstream::bench {
namespace {

/// A slope between two runs may be 0 or negative: that is noise, not a very short time, and would hold against any upper limit.
double unless_noise(double value, const std::string& unit)
{
    return value > 0 || unit == "%" ? value : std::numeric_limits<double>::quiet_NaN();
}

} // namespace

void target_list::row(std::string name, std::string wanted, figure f)
{
    spdlog::info("measured: {}: {:.4g} {}", name, f.value.median, f.unit); // the table comes at the end, minutes later
    const bool counts = on_cuda_ && f.verified;
    const std::string why = counts ? "" : !f.verified ? f.note : "times on the host device are no GPU times";
    rows_.push_back({std::move(name), std::move(wanted), std::move(f), {}, counts ? verdict::met : verdict::not_measured, why});
}

void target_list::no_row(std::string name, std::string wanted, std::string why)
{
    rows_.push_back({std::move(name), std::move(wanted), {}, {}, verdict::not_measured, std::move(why)});
}

void target_list::limit_by(const std::vector<std::string>& reference_names, double factor, const std::string& what)
{
    const std::string& unit = rows_.back().measured->unit;
    double least = std::numeric_limits<double>::infinity();
    for (const std::string& name : reference_names) { // one that is noise, or was not measured, might have been the least
        const auto found = floors_.references({name}, unit);
        if (found.empty()) return missing(name);
        const double value = unless_noise(found.front().value, unit);
        if (!(value >= least)) least = value; // so that NaN stays
        if (std::isnan(least)) break;
    }
    add(what, figure_value(), factor * least, false);
}

void target_list::limit_by(const figure& other, double factor, const std::string& what, bool at_least)
{
    if (other.verified)
        add(what, figure_value(), factor * unless_noise(other.value.median, other.unit), at_least);
    else
        missing(other.name);
}

void target_list::share_of(const std::string& alternative, double share, const std::string& what)
{
    const figure& f = *rows_.back().measured;
    for (const reference& r : f.alternatives)
        if (r.name == alternative) return add(what, unless_noise(r.value, f.unit) / figure_value(), share, true);
    missing(alternative);
}

void target_list::further(const std::string& key, const std::string& what, double limit, bool at_least)
{
    for (const auto& [name, value] : rows_.back().measured->further)
        if (name == key) return add(what, value, limit, at_least);
    missing(key);
}

void target_list::add(const std::string& what, double value, double limit, bool at_least)
{
    target& t = rows_.back();
    t.conditions.push_back({what, value, limit, at_least});
    if (!std::isfinite(value) || !std::isfinite(limit)) {
        t.outcome = verdict::not_measured;
        const bool noise =
            t.measured->note.empty() || std::isfinite(t.measured->value.median); // else the note says why there is none
        if (t.why.empty()) t.why = what + ": no figure: " + (noise ? "the times were noise; give more tasks" : t.measured->note);
    } else if (t.outcome == verdict::met && !t.conditions.back().holds()) {
        t.outcome = verdict::falls_short;
    }
}

void target_list::missing(const std::string& reference_name)
{
    target& t = rows_.back();
    t.outcome = verdict::not_measured;
    const std::string trouble = floors_.trouble_of(reference_name);
    if (t.why.empty())
        t.why = "'" + reference_name + "' "
            + (trouble.empty() ? "was not measured in this run" : "was measured and is wrong: " + trouble);
}

double target_list::figure_value() const
{
    const figure& f = *rows_.back().measured;
    return unless_noise(f.value.median, f.unit);
}

} // namespace slipstream::bench
