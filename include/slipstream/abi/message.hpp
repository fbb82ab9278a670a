// The wire format: how one task crosses the bus, in 16-byte chunks that carry their own lap tag.
//
// LAYOUT of a ring slot: 64 bytes = 4 chunks; of a chunk: words 0-2 payload, word 3 tag.
//   tag = lap + 1 (mod 2^32), lap = ring position / ring slots (a power of two). Zero-filled memory is no valid lap 0. A slot is
//   overwritten only after the reader acknowledged it, so a reader can meet only the current tag or the one of the lap before.
// A message is a run of chunks; it starts on a slot boundary and its last slot is filled up with empty chunks:
//   header        w0 blocks | w1 task type (13 bits), crossing: peer (3), flags (8), 1 + chunks of entries if plain (8)
//                 | w2 entries (after + accesses; 16 bits), scalar words (7), crossing: meeting (9). Plain: no entry takes two
//                 chunks, and the message is no longer than message_plain_slots slots, nor than its ring
//   entries       in order: `after` entries, accesses of the typed members in member order, further accesses
//   scalars       3 words a chunk
// An entry's first word says what it is. A handle takes one word, three to a chunk; a run of handles that does not fill
// its chunk leaves the rest 0. A range takes one chunk, a long range or a rectangle two.
//   handle  w  = 1<<31 | mode<<28 | handle index
//   range   w0 = mode<<28 | kind<<25 | address bits 56..32, w1 = address bits 31..0, w2 = bytes
//   long    the same, then a chunk: w0 = bytes bits 63..32
//   rect    the same with w2 = width in bytes, then a chunk: w0 = rows, w1 = pitch in bytes
//   after   w0 = kind<<25 | ring, w1 = position bits 31..0, w2 = position bits 63..32
//           ring 255: no task but a CUDA stream: join word = position bits 63..32, raised to at least bits 31..0 (it wraps)
// A task that touches memory of several parts of an engine (config::parts) crosses: it goes to one of them, its home,
// and a stand-in goes to each of the others, with what the task does to memory there, and without blocks (header w0 = 0); its
// flags say whether the task's worker counts for it.
// See device/crossing.hpp.
//
// Kept free for what may come:
//   tile-level dependencies     entry kind `after` gains a threshold: the spare bits of its w0 (24..16)
//   device-side spawn           the ring's memory space and scope are parameters of the ring, not of the message
//   dataflow edges              flags bit `gang`: blocks may wait for each other, so they must be co-resident
//   managed arrays, transfers   handle indices: the handle table carries the owner
//   several GPUs                `after` w0 bits 15..8: device
//   renaming                    flags bit `rename`: pure writes of runtime-owned handles get a fresh version
//   record and replay           flags bit `recorded`: `after` positions are distances, accesses are not checked
//   reductions                  mode bit 2
#pragma once
#include <slipstream/abi/word.hpp>

namespace slipstream::abi {

inline constexpr u32 chunk_payload_words = 3;
inline constexpr u32 slot_chunks = 4;
inline constexpr u32 message_plain_slots = 8; ///< what the reader fetches at a time: a plain message is no longer,
                                              ///< nor longer than its ring
inline constexpr u32 address_bits = 57; ///< canonical user-space addresses of x86-64 and of the GPU

/// How a task uses an access. Bits: 1 reads, 2 writes, 4 reserved for reductions.
enum class access_mode : u32 { none = 0, read = 1, write = 2, read_write = 3 };

enum class entry_kind : u32 {
    none = 0,
    range = 1,      ///< [address, address + bytes)
    rect = 2,       ///< rows of `width` bytes, `pitch` bytes apart
    loose = 3,      ///< a bounding range: overlaps like a range, never covers; on the wire as a long range
    after = 4,      ///< explicit predecessor (ring, position)
    long_range = 5, ///< on the wire only: a range of 4 GiB or more
};

enum message_flags : u32 {
    flag_whole_memory = 1u << 0, ///< ordered against everything before and after
    flag_recorded = 1u << 1,     ///< reserved
    flag_gang = 1u << 2,         ///< reserved
    flag_counted = flag_gang,    ///< of a stand-in, which has no blocks: counts_for_stand_ins()
    flag_rename = 1u << 3,       ///< reserved
    flag_no_access = 1u << 5,    ///< the accesses only rebuild the task struct; nothing is ordered by them
    flag_clear_failure = 1u << 6, ///< of a whole-memory task: all poison is forgotten when its turn comes
    flag_crossing = 1u << 7,     ///< a task that touches memory of several parts of the engine, or its stand-in in one of them
    flag_async_proxy = 1u << 4,  ///< reserved: body uses bulk copies, its releases need the proxy fence
};

/// Tag of every chunk written at ring position `position` into a ring of `slots` slots, a power of two (a 64-bit division
/// costs the GPU hundreds of cycles, a shift two).
SLIPSTREAM_BOTH u32 lap_tag(u64 position, u32 slots)
{
#if defined(__CUDA_ARCH__)
    return static_cast<u32>(position >> (__ffs(static_cast<int>(slots)) - 1)) + 1;
#else
    return static_cast<u32>(position >> __builtin_ctz(slots)) + 1;
#endif
}

inline constexpr u32 parts_max = 8;
inline constexpr u32 meetings_max = 512; ///< of crossing tasks with the same home; the host has no more of them under way
/// What the host says of a task, or a stand-in, that ended for what happened in another part of the engine,
/// until it has found out what that was.
inline constexpr u32 status_crossing = 0xffffffff;

inline constexpr u32 stand_ins_counted_max = 6;
/// Does the worker of a crossing task count a block for each of its stand-ins? `clears`: it is a clear_failure. See
/// device/crossing_stage.hpp.
SLIPSTREAM_BOTH constexpr bool counts_for_stand_ins(u32 blocks, u32 stand_ins, bool clears)
{
    return blocks == 1 && stand_ins <= stand_ins_counted_max && !clears;
}

/// Where a crossing task and its stand-ins meet.
struct crossing_word {
    u32 word = 0; ///< meeting | peer << 9

    SLIPSTREAM_BOTH static crossing_word make(u32 meeting, u32 peer) { return {meeting | peer << 9}; }
    SLIPSTREAM_BOTH u32 meeting() const { return word & (meetings_max - 1); } ///< of its home's
    SLIPSTREAM_BOTH u32 peer() const { return word >> 9; } ///< of the task: how many stand-ins it has;
                                                           ///< of a stand-in: the task's home
};
static_assert(meetings_max == 1u << 9 && parts_max == 1u << 3);

/// The first chunk of a message, decoded.
struct message_header {
    u32 blocks;
    u32 type;    ///< index into the runtime's task list
    u32 flags;   ///< message_flags
    u32 entries; ///< after entries and accesses
    u32 scalars; ///< words
    u32 entry_chunks_plus_one = 0; ///< 0: not plain
    crossing_word crossing{};      ///< with flag_crossing

    SLIPSTREAM_BOTH bool plain() const { return entry_chunks_plus_one != 0; }
    SLIPSTREAM_BOTH u32 entry_chunks() const { return entry_chunks_plus_one - 1; }
    /// Chunks of a plain message, this one included.
    SLIPSTREAM_BOTH u32 plain_chunks() const { return entry_chunks_plus_one + (scalars + 2) / 3; }

    static constexpr u32 entries_max = 0xffff;
    static constexpr u32 types_max = 1u << 13;
    static constexpr u32 scalars_max = 0x7f;

    SLIPSTREAM_BOTH chunk encode() const
    {
        return chunk{{blocks, type | crossing.peer() << 13 | flags << 16 | entry_chunks_plus_one << 24,
                      entries | scalars << 16 | crossing.meeting() << 23, 0}};
    }
    SLIPSTREAM_BOTH static message_header decode(const chunk& c)
    {
        return {c.w[0], c.w[1] & (types_max - 1), c.w[1] >> 16 & 0xff, c.w[2] & 0xffff, c.w[2] >> 16 & scalars_max, c.w[1] >> 24,
                crossing_word::make(c.w[2] >> 23, c.w[1] >> 13 & (parts_max - 1))};
    }
};

inline constexpr u32 after_stream_ring = 0xff; ///< in an `after` entry: waits for a join word, not for a task

inline constexpr u32 handle_bit = 1u << 31;
inline constexpr u32 handle_index_mask = (1u << 28) - 1;

SLIPSTREAM_BOTH u32 encode_handle(u32 index, access_mode mode)
{
    return handle_bit | static_cast<u32>(mode) << 28 | index;
}

SLIPSTREAM_BOTH u32 encode_first(entry_kind kind, access_mode mode, u32 low_bits)
{
    return static_cast<u32>(mode) << 28 | static_cast<u32>(kind) << 25 | low_bits;
}

/// The chunk of a range, or the first one of a rectangle, loose or long range. `first`: what encode_first makes of kind and mode;
/// of `bytes` the low word.
SLIPSTREAM_BOTH chunk encode_range(u32 first, u64 address, u64 bytes)
{
    return {{first | (static_cast<u32>(address >> 32) & ((1u << (address_bits - 32)) - 1)), static_cast<u32>(address),
             static_cast<u32>(bytes), 0}};
}

SLIPSTREAM_BOTH access_mode mode_of(u32 first_word) { return static_cast<access_mode>(first_word >> 28 & 7); }
inline constexpr u32 kind_mask = 7u << 25;
SLIPSTREAM_BOTH entry_kind kind_of(u32 first_word) { return static_cast<entry_kind>(first_word >> 25 & 7); }

/// What one entry of the handle table says: a registered buffer or tile.
struct handle_entry {
    u64 address;
    u64 bytes;  ///< range: length; rect: bytes in one row
    u32 rows;   ///< 0 for a range
    u32 pitch;
    u64 reserved; ///< owner and version, for managed arrays and renaming
};
static_assert(sizeof(handle_entry) == 32);

} // namespace slipstream::abi
