// The files of this folder, each with its floors.
#pragma once
#include "tools/slipstream/bench/floors/floor_list.hpp"

namespace slipstream::bench {

void add_signal_floors(std::vector<floor_entry>& to); ///< flags, L2 loads, fences
void add_hop_floors(std::vector<floor_entry>& to);    ///< a dependent body on the same SM, another SM, through a hub
void add_barrier_floors(std::vector<floor_entry>& to);
void add_bus_floors(std::vector<floor_entry>& to);          ///< host and GPU over pinned memory
void add_launch_alternatives(std::vector<floor_entry>& to); ///< launches on streams
void add_graph_alternatives(std::vector<floor_entry>& to);
void add_wide_alternatives(std::vector<floor_entry>& to); ///< bodies of very many blocks

} // namespace slipstream::bench
