// The inside of the explorer that model_platform.hpp calls: operations of the running lane.
#pragma once
#include "tests/model/memory.hpp"

namespace slipstream::model::engine {

enum class operation : u8 { load, store, add };

u64 epoch(); ///< number of the running execution; words and cells register themselves once per epoch
u32 register_word();
u32 register_cell();
void label_word(u32 location, const char* name);
void label_cell(u32 cell, const char* name);
void reuse_needs_order(u32 location);

/// bytes: 4, 8 or 16. add returns the value before.
value atomic(operation op, u32 location, u32 bytes, const value& operand, edge e, order o, scope s);
void fence(edge e, order o, scope s);
enum class cell_use : u8 { read, write, update };
void cell_access(u32 cell, cell_use use);
void pause();
u64 clock_ns();

u32 lane_rank();
u32 lane_count();
/// Barrier of the lanes of this role from lane `first` on; `what` must be the same on all. One that does not order
/// hands no memory over.
void barrier(const char* what, bool orders = true, u32 first = 0);
/// Every lane's value, valid until this lane's next but one collective.
const u64* gather(const char* what, u64 mine);
/// The leader's bytes (at most 256) on every lane.
void broadcast(void* bytes, u32 count);

} // namespace slipstream::model::engine
