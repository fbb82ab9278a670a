// What an engine stands for in a comparison.
#pragma once
#include <string_view>

namespace slipstream::cli {

enum class engine_kind {
    baseline,     ///< serial: what speed-ups are over
    alternative,  ///< takes tasks as they come, or makes its graph in every run: does the same job as slipstream
    static_bound, ///< graph-replay: knew all tasks beforehand and made its graph outside the run
    own,          ///< over our runtime
};

constexpr engine_kind kind_of(std::string_view engine)
{
    if (engine == "serial") return engine_kind::baseline;
    if (engine == "graph-replay") return engine_kind::static_bound;
    if (engine.starts_with("slipstream")) return engine_kind::own;
    return engine_kind::alternative;
}

constexpr const char* name_of(engine_kind kind)
{
    switch (kind) {
    case engine_kind::baseline:
        return "baseline";
    case engine_kind::alternative:
        return "alternative";
    case engine_kind::static_bound:
        return "static";
    case engine_kind::own:
        break;
    }
    return "own";
}

} // namespace slipstream::cli
