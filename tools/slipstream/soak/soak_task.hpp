// The bodies of a soak: cheap tasks over 64-bit cells whose results depend on the order in which each cell was used.
//
// A block of a task
//   at its start   mixes the task's number and every cell that the task reads: the digest
//   at its end     writes mix(digest, place) into its share of the cells that the task writes, and adds the digest, mixed with the
//                  block's index, to a result word of its own
// A missed RAW, WAR or WAW, a task or block that is lost or runs twice, an `after` that is not kept changes a cell or a result.
// soak_stream.cpp computes the same one task after another.
#pragma once
#include "workloads/digest/digest_task.hpp"
#include <slipstream/access.hpp>

namespace slipstream::soak {

using workloads::digest_mix;
using workloads::digest_work;

/// What the tasks of a stream share; in device memory, 256-byte aligned.
struct soak_board {
    u64 cells;   ///< address of u64[]
    u64 results; ///< address of u64[]: one for each block of each task
    u64 ops;     ///< address of soak_op[]: what listed tasks do
    u64 salt;    ///< of the stream
};

/// A rectangle of cells; rows 1: a range.
struct soak_op {
    u32 first; ///< cell, or result word
    u16 rows;
    u16 columns;
    u16 pitch; ///< cells
    u16 mode;  ///< access_mode | of_results

    static constexpr u16 of_results = 4; ///< `first` is a result word: of a task that `after` names

    SLIPSTREAM_BOTH bool reads() const { return (mode & 1) != 0; }
    SLIPSTREAM_BOTH bool writes() const { return (mode & 2) != 0; }
    SLIPSTREAM_BOTH u32 count() const { return static_cast<u32>(rows) * columns; }
    SLIPSTREAM_BOTH u32 cell(u32 i) const { return rows == 1 ? first + i : first + i / columns * pitch + i % columns; }
};
static_assert(sizeof(soak_op) == 12);

/// Board, place of the results and spin in two words, so that a task of two ranges takes one ring slot.
struct soak_key {
    u64 raw = 0; ///< address of the board / 256 (40 bits) | first result word (22) | spin (2)

    static constexpr u32 results_max = 1u << 22;
    static constexpr u32 spins = 4;

    static soak_key make(u64 board, u32 result, u32 spin)
    {
        return {board >> 8 | static_cast<u64>(result) << 40 | static_cast<u64>(spin) << 62};
    }
    SLIPSTREAM_BOTH soak_board board() const { return *reinterpret_cast<const soak_board*>((raw & ((u64{1} << 40) - 1)) << 8); }
    SLIPSTREAM_BOTH u32 result() const { return static_cast<u32>(raw >> 40) & (results_max - 1); }
    /// Steps of digest_work (about 2 ns each) before the reads and again before the writes.
    SLIPSTREAM_BOTH u32 spin_steps() const
    {
        const u32 spin = static_cast<u32>(raw >> 62);
        return spin == 0 ? 0 : spin == 1 ? 200 : spin == 2 ? 3000 : 40'000;
    }
};

SLIPSTREAM_BOTH u64 soak_initial(u64 salt, u32 cell) { return digest_mix(salt, cell); }
SLIPSTREAM_BOTH u64 soak_begin(u64 salt, u32 result) { return digest_mix(salt, result); }
SLIPSTREAM_BOTH u64 soak_word(u64 digest, u32 block) { return digest_mix(digest, block) | 1; }
/// Terms are added up, so that the threads of a block may read in any order.
SLIPSTREAM_BOTH u64 soak_term(u64 value, u32 op, u32 i) { return digest_mix(value, static_cast<u64>(op) << 32 | i); }
SLIPSTREAM_BOTH u64 soak_written(u64 digest, u32 op, u32 i) { return digest_mix(digest, static_cast<u64>(op) << 32 | i); }

/// Memory of one access, as a body sees it.
struct soak_view {
    u64* data;
    u32 rows, columns, pitch; ///< pitch in cells
    bool reads, writes;

    SLIPSTREAM_BOTH u32 count() const { return rows * columns; }
    SLIPSTREAM_BOTH u64& at(u32 i) const { return rows == 1 ? data[i] : data[i / columns * pitch + i % columns]; }
};

template <class T> SLIPSTREAM_BOTH soak_view soak_view_of(const T& access)
{
    const u32 mode = static_cast<u32>(T::mode);
    auto* const data = const_cast<u64*>(access.data());
    if constexpr (T::is_rect)
        return {data, static_cast<u32>(access.rows()), static_cast<u32>(access.columns()), static_cast<u32>(access.pitch() / 8),
                (mode & 1) != 0, (mode & 2) != 0};
    else
        return {data, 1, static_cast<u32>(access.size()), 0, (mode & 1) != 0, (mode & 2) != 0};
}

/// view(k): the k-th of `views` accesses. code: 0, or the last block fails with it and the task's writes are left out.
template <class Block, class View>
SLIPSTREAM_BODY void soak_body(Block& block, const soak_board& board, u32 result, u32 spin_steps, u32 code, u32 views,
                               const View& view)
{
    digest_work(spin_steps);
    u64 sum = 0;
    for (u32 k = 0; k < views; ++k) {
        const soak_view v = view(k);
        if (!v.reads) continue;
        const u32 count = v.count();
        for (u32 i = block.rank(); i < count; i += block.size()) sum += soak_term(v.at(i), k, i);
    }
    const u64 digest = soak_begin(board.salt, result) + block.reduce_add(sum);
    digest_work(spin_steps);
    block.sync(); // no thread writes before the slowest one has read
    if (code != 0) {
        if (block.rank() == 0 && block.block_index() + 1 == block.blocks()) block.fail(code);
    } else {
        bool first = true;
        for (u32 k = 0; k < views; ++k) {
            const soak_view v = view(k);
            if (!v.writes) continue;
            if (!first) block.sync(); // of two writes to one cell the later one stays
            first = false;
            const u32 count = v.count();
            for (u64 i = static_cast<u64>(block.block_index()) * block.size() + block.rank(); i < count;
                 i += static_cast<u64>(block.size()) * block.blocks())
                v.at(static_cast<u32>(i)) = soak_written(digest, k, static_cast<u32>(i));
        }
    }
    if (block.rank() == 0)
        reinterpret_cast<u64*>(board.results)[result + block.block_index()] +=
            soak_word(digest, block.block_index()); // twice would show
}

template <class A, class B> struct two_access_task {
    static constexpr const char* name = A::is_rect ? "soak: tile" : B::mode == access_mode::write ? "soak: move" : "soak: update";
    static constexpr bool brief = B::mode == access_mode::read_write; // of some types, so that both ways are gone
    A a;
    B b;
    soak_key key;
    template <class Block> SLIPSTREAM_BODY void operator()(Block& block) const
    {
        soak_body(block, key.board(), key.result(), key.spin_steps(), 0, 2,
                  [this](u32 k) { return k == 0 ? soak_view_of(a) : soak_view_of(b); });
    }
};
using move_task = two_access_task<in<u64>, out<u64>>;
using update_task = two_access_task<in<u64>, inout<u64>>;
using tile_task = two_access_task<in2d<u64>, out2d<u64>>;

struct join_task {
    static constexpr const char* name = "soak: join";
    in<u64> a, b;
    out<u64> c;
    soak_key key;
    template <class Block> SLIPSTREAM_BODY void operator()(Block& block) const
    {
        soak_body(block, key.board(), key.result(), key.spin_steps(), 0, 3,
                  [this](u32 k) { return k == 0 ? soak_view_of(a) : k == 1 ? soak_view_of(b) : soak_view_of(c); });
    }
};

/// Adds to a cell that tasks of all threads add to, in whatever order they were admitted: none may be lost.
struct add_task {
    static constexpr const char* name = "soak: add";
    static constexpr bool brief = true;
    inout<u64> sum;
    soak_key key;
    template <class Block> SLIPSTREAM_BODY void operator()(Block& block) const noexcept
    {
        if (block.rank() != 0) return;
        const soak_board board = key.board();
        const u64 digest = soak_begin(board.salt, key.result());
        u64* const cell = sum.data();
        const u64 before = *cell;
        digest_work(key.spin_steps());
        *cell = before + digest;
        reinterpret_cast<u64*>(board.results)[key.result()] += soak_word(digest, 0);
    }
};

/// Does what its list says; its accesses are declared beside the task. Brief: what rows are made of.
template <bool Brief> struct listing_task {
    static constexpr const char* name = Brief ? "soak: row" : "soak: listed";
    static constexpr bool brief = Brief;
    soak_key key;
    u32 first_op;
    u32 count;     ///< of operations
    u32 code;      ///< 0, or what its last block fails with
    u32 late_steps; ///< further steps of digest_work before the reads and the writes

    template <class Block> SLIPSTREAM_BODY void operator()(Block& block) const
    {
        const soak_board board = key.board();
        const auto* const ops = reinterpret_cast<const soak_op*>(board.ops) + first_op;
        soak_body(block, board, key.result(), key.spin_steps() + late_steps, code, count, [&](u32 k) -> soak_view {
            const soak_op op = ops[k];
            auto* const base = reinterpret_cast<u64*>((op.mode & soak_op::of_results) != 0 ? board.results : board.cells);
            return {base + op.first, op.rows, op.columns, op.pitch, op.reads(), op.writes()};
        });
    }
};
using listed_task = listing_task<false>;
using row_task = listing_task<true>;

/// Memory as a stream finds it.
struct reset_task {
    static constexpr const char* name = "soak: reset";
    out<u64> cells;
    out<u64> results;
    u64 salt;
    template <class Block> SLIPSTREAM_BODY void operator()(Block& block) const
    {
        for (u64 i = block.global_rank(); i < cells.size(); i += block.global_size())
            cells[i] = soak_initial(salt, static_cast<u32>(i));
        for (u64 i = block.global_rank(); i < results.size(); i += block.global_size()) results[i] = 0;
    }
};

} // namespace slipstream::soak
