// Floors of this run: measured when first asked for, then remembered.
#pragma once
#include "tools/slipstream/bench/figure.hpp"
#include "tools/slipstream/bench/floors/floor_list.hpp"
#include <map>
#include <optional>

namespace slipstream::bench {

class floor_book {
public:
    floor_book(std::vector<floor_entry> entries, u32 repeats) : entries_(std::move(entries)), repeats_(repeats) {}

    const std::vector<floor_entry>& entries() const { return entries_; }
    const figure& measure(const floor_entry& entry);
    /// Measures those of `names` that exist here (none on the host device), before a runtime takes the GPU.
    void prepare(const std::vector<std::string>& names);
    /// A reference to each of `names` that was prepared and verified, in the unit of the figure that it will stand beside.
    std::vector<reference> references(const std::vector<std::string>& names, const std::string& unit) const;
    /// What else was found when it was measured; empty when it was not, or not verified.
    std::vector<std::pair<std::string, double>> further(const std::string& name) const;
    std::optional<double> median(const std::string& name) const;
    /// Why there is no such floor, though it was measured; empty where it verified, or was not measured.
    std::string trouble_of(const std::string& name) const;
    /// Were all floors that this run measured good?
    bool all_verified() const;

private:
    std::vector<floor_entry> entries_;
    u32 repeats_;
    std::map<std::string, figure> measured_;
};

} // namespace slipstream::bench
