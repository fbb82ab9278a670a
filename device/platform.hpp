// What a Platform is: the small set of operations every shared-state algorithm of Slipstream is written over.
//
// A Platform P provides
//   P::word<T>, P::chunk_word, P::cell<T>   storage (abi::word / abi::chunk_word / abi::cell outside the model);
//                                            all-zero memory is a valid initial state
//   P::load (edge, word, order, scope)      relaxed or acquire
//   P::store(edge, word, value, order, scope)   relaxed or release
//   P::fetch_add(edge, word, value, order, scope)   returns what was there; P::add(...) of the same arguments returns nothing
//   P::load / P::store of a chunk_word      one 16-byte access, never torn
//   P::fence(edge, order, scope)            acquire, release or acq_rel
//   P::get(cell) / P::set(cell, value)      plain access: must be ordered by an edge (the model reports a race if not)
//   P::worker_groups                     groups of 32 workers at most; loops over them are unrolled
//   P::mailbox_depth                     mails a worker may have, a power of two, at most 16
//   P::wait_for_linker                   looks the scheduler gives the linker, where they run side by side
//   P::look_around, P::look_for_stop    rounds between two looks at what rarely changes (command word; stop word): looking costs
//                                        a bus round trip on the GPU, nothing in the model
//   P::look_at_request, P::look_at_rings ... at the other roles' phases; at the other rings while one is busy
//   P::pause(attempt)                       one step of a wait strategy; every loop around it has a stop check, or waits for what
//                                        was stored before it began, and says so
//   P::keep(value)                          a value that the compiler shall not find out again by itself
//   P::clock_ns()                           monotonic nanoseconds
//   P::team, P::lane_array, P::crew         the lanes that run one role together (below)
//
// A team runs its role in single-program fashion: all lanes execute the same control flow, values that steer it are equal
// on all lanes. Loops over data are written `for (i = rank; i < n; i += size)`. Collective operations:
//   a team is default constructible
//   rank() size() leader()
//   sync()                  lanes wait for each other; writes before it are visible to the team after it
//   each32(act)             act(k), k = 0..31, each on the lane that has item k; no collective
//   mask32(pred)            bit k = pred(k), k = 0..31, the same mask on every lane; a collective, implies sync()
//   masks32<N>(load, pred)  N such masks, of pred(n, k, load(n, k)), with all loads issued before the first is looked at
//   each_hit(mask, pred, hit)  hit(j, k) for each j in mask and k = 0..31 with pred(j, k); lanes do their own hits, implies sync()
//   match32(mask, key, first)  first.at(0, k): the lowest item in mask with the key of item k, for each k in mask; implies sync()
//   broadcast(value)        the leader's value on every lane; from_lane(array, k): item k of a lane_array<u32, 1>, on every lane
//   gather32(array, index, out)   out.at(0, k) = item index.at(0, k) of the array, k = 0..31
//   sums_before(array)      each item of a lane_array<u32, 1> becomes the sum of those before it
//   any(pred), reduce_min(value), reduce_add(value)   of values alone: as broadcast(), from_lane() and gather32() they order no
//                           memory
// Not collective, by any lane, on memory that this team (crew) alone uses: add(word, value), which returns the value before,
// set_bits(word, bits) and clear_bits(word, bits), which return the word before, lower(word, value), which stores the value if it
// is less, claim(word, value), which stores the value, never the same twice, if the word is 0 and says whether it did, and
// join(word, value), which does so with values that may be the same and says whether the word is the value now: lanes may meet on
// one word.
//
// A lane_array<T, N> holds N x 32 values; at(n, k) is touched by the lane that has item k in mask32 alone: a register there.
//
// A crew is several teams, of which the first (index 0) leads the others, its helpers: teams(), index() and team() of the
// caller, sync() of all lanes of all, sync_helpers() of all lanes of the helpers.
#pragma once
#include "device/edge.hpp"
#include <slipstream/abi/word.hpp>

namespace slipstream::device {

/// mailbox_depth of the platforms that run tasks. One for both: the host lays out the GPU's memory by its own. While a worker
/// runs a chain's mails, which it answers together, the scheduler fills another one's.
inline constexpr u32 mailbox_places = 16;

enum class order : u8 { relaxed, acquire, release, acq_rel };
enum class scope : u8 { block, device, system };

/// Number of set bits; portable between g++ and nvcc.
SLIPSTREAM_BOTH u32 popcount(u32 mask)
{
#if defined(__CUDA_ARCH__)
    return static_cast<u32>(__popc(mask));
#else
    return static_cast<u32>(__builtin_popcount(mask));
#endif
}

/// Index of the lowest set bit; mask must not be 0.
SLIPSTREAM_BOTH u32 lowest_bit(u32 mask)
{
#if defined(__CUDA_ARCH__)
    return static_cast<u32>(__ffs(static_cast<int>(mask)) - 1);
#else
    return static_cast<u32>(__builtin_ctz(mask));
#endif
}

/// Index of the highest set bit; mask must not be 0.
SLIPSTREAM_BOTH u32 highest_bit(u32 mask)
{
#if defined(__CUDA_ARCH__)
    return 31 - static_cast<u32>(__clz(static_cast<int>(mask)));
#else
    return 31 - static_cast<u32>(__builtin_clz(mask));
#endif
}

/// The lowest `count` bits; count is at most 32.
SLIPSTREAM_BOTH u32 low_bits(u32 count) { return count < 32 ? (1u << count) - 1 : ~0u; }

} // namespace slipstream::device
