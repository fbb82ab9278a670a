// The parameters that both tile algorithms have: tiles, tile, precision, handles.
#pragma once
#include "workloads/parameters.hpp"
#include "workloads/tiles/tiled_matrix.hpp"

namespace slipstream::workloads {

struct tile_parameters {
    tiling shape;
    bool fp64;
};

/// Throws config_error that names workload, parameter and what it may be.
inline tile_parameters read_tile_parameters(const std::string& workload, const parameters& defaults, const parameters& given)
{
    const parameter_reader values(workload, defaults, given);
    tile_parameters p{{values.whole("tiles", 4, 48), values.whole("tile", 16, 256), values.whole("handles", 0, 1) == 1}, false};
    if (p.shape.tile % 16 != 0)
        throw config_error(workload + ": tile = '" + values.text("tile") + "' must be a multiple of 16, from 16 to 256");
    const std::string& precision = values.text("precision");
    if (precision != "fp32" && precision != "fp64")
        throw config_error(workload + ": precision = '" + precision + "' must be fp32 or fp64");
    p.fp64 = precision == "fp64";
    return p;
}

} // namespace slipstream::workloads
