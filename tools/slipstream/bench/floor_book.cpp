#include "tools/slipstream/bench/floor_book.hpp"
#include <algorithm>
#include <slipstream/status.hpp>
#include <spdlog/spdlog.h>

namespace slipstream::bench {
namespace {

// Figures are times of one task or rates in millions a second; so are the floors. A rate is the inverse of microseconds.
double converted(double value, const std::string& from, const std::string& to)
{
    const auto microseconds = [](double v, const std::string& unit) { return unit == "ns" ? v * 1e-3 : unit == "M/s" ? 1 / v : v; };
    const double us = microseconds(value, from);
    return to == "ns" ? us * 1e3 : to == "M/s" ? 1 / us : us;
}

} // namespace

const figure& floor_book::measure(const floor_entry& entry)
{
    const auto found = measured_.find(entry.name);
    if (found != measured_.end()) return found->second;
    figure f{entry.name, entry.unit, {}};
    f.kind = entry.kind == floor_kind::limit ? "limit" : "alternative";
    try {
        floor_result r = entry.measure(repeats_);
        f.value = spread_of(r.samples);
        f.further = std::move(r.further);
        f.repeats = static_cast<u32>(r.samples.size());
        f.verified = r.verified;
        f.note = r.verified ? r.note : "wrong data, or a wait ran into its bound";
    } catch (const error& e) { // one floor that this GPU cannot measure does not take the others away
        f.note = e.what();
    }
    if (!f.verified) spdlog::warn("{}: {}", f.name, f.note); // no figure will stand beside it, which nobody would notice
    return measured_.emplace(entry.name, std::move(f)).first->second;
}

void floor_book::prepare(const std::vector<std::string>& names)
{
    for (const floor_entry& entry : entries_)
        if (std::find(names.begin(), names.end(), entry.name) != names.end()) measure(entry);
}

std::vector<reference> floor_book::references(const std::vector<std::string>& names, const std::string& unit) const
{
    std::vector<reference> out;
    for (const std::string& name : names) {
        const auto found = measured_.find(name);
        if (found != measured_.end() && found->second.verified)
            out.push_back({name, converted(found->second.value.median, found->second.unit, unit)});
    }
    return out;
}

std::vector<std::pair<std::string, double>> floor_book::further(const std::string& name) const
{
    const auto found = measured_.find(name);
    if (found == measured_.end() || !found->second.verified) return {};
    return found->second.further;
}

std::optional<double> floor_book::median(const std::string& name) const
{
    const auto found = measured_.find(name);
    if (found == measured_.end() || !found->second.verified) return {};
    return found->second.value.median;
}

std::string floor_book::trouble_of(const std::string& name) const
{
    const auto found = measured_.find(name);
    return found == measured_.end() || found->second.verified ? std::string() : found->second.note;
}

bool floor_book::all_verified() const
{
    return std::all_of(measured_.begin(), measured_.end(), [](const auto& f) { return f.second.verified; });
}

} // namespace slipstream::bench
