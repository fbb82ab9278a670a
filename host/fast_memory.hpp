// How the control block's fast memory is shared out.
#pragma once
#include "device/control.hpp"
#include "device/host_platform.hpp"

namespace slipstream::host {

/// Chooses n.ahead_slots, n.index_buckets and n.pool_near_blocks, the fields that may give way, for fast memory of `most` bytes;
/// all others are given. Returns where every field lies. near_bytes beyond `most`: it cannot be.
device::control_offsets share_fast_memory(device::sizes& n, u64 most);

} // namespace slipstream::host
