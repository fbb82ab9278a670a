// The rows of `bench targets` in the making: each is judged as its conditions come.
#pragma once
#include "tools/slipstream/bench/targets.hpp"

namespace slipstream::bench {

class target_list {
public:
    target_list(const floor_book& floors, bool on_cuda) : floors_(floors), on_cuda_(on_cuda) {}

    std::vector<target> take() { return std::move(rows_); }

    /// A row with the figure that decides it. Conditions follow by the calls below.
    void row(std::string name, std::string wanted, figure f);
    void no_row(std::string name, std::string wanted, std::string why);

    /// The figure itself. Here and below: noise, which is what any figure but one in % is at 0 or less, holds against no limit.
    void limit(const std::string& what, double limit, bool at_least = false) { add(what, figure_value(), limit, at_least); }
    /// The figure against `factor` times a floor or an alternative of this run, of several the one that takes least time ...
    void limit_by(const std::vector<std::string>& reference_names, double factor, const std::string& what);
    void limit_by(const std::string& reference_name, double factor, const std::string& what)
    {
        limit_by(std::vector{reference_name}, factor, what);
    }
    /// ... or another figure.
    void limit_by(const figure& other, double factor, const std::string& what, bool at_least = false);
    /// How fast the figure is beside one of its alternatives: 1 is as fast.
    void share_of(const std::string& alternative, double share, const std::string& what);
    /// One of the figure's further values.
    void further(const std::string& key, const std::string& what, double limit, bool at_least = false);
    /// Something else than the figure itself.
    void add(const std::string& what, double value, double limit, bool at_least);

    /// What the row refers to was not measured.
    void missing(const std::string& reference_name);

private:
    double figure_value() const;

    const floor_book& floors_;
    bool on_cuda_;
    std::vector<target> rows_;
};

} // namespace slipstream::bench
