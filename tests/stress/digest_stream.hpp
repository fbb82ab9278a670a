// Random streams of tasks whose result is a digest of the order they ran in, and the sequential run to compare with.
//
// Memory is an array of 64-bit cells. A task mixes its number with every cell it reads (at its start), keeps the digest in a
// result cell of its own, and writes it into every cell it writes (at its end). A missed RAW, WAR or WAW, a lost task, a task
// that ran twice or an `after` that was not kept changes some cell or result. The bodies do nothing but what their list of
// operations says; the accesses are declared from the same list.
//
// With several submitting threads the stream is still planned as one sequence: where two tasks of different threads meet, the
// later one names the earlier one in `after`, so that every run must equal the sequential one.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <exception>
#include <random>
#include <slipstream/runtime.hpp>
#include <string>
#include <thread>
#include <vector>

namespace slipstream::tests {

SLIPSTREAM_BOTH u64 mix(u64 x)
{
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9ull;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebull;
    return x ^ x >> 31;
}

/// A rectangle of cells, relative to the array's start. rows 1: a range.
struct cell_op {
    u32 first;
    u16 rows;
    u16 columns;
    u16 pitch; ///< cells
    u16 mode;  ///< access_mode

    SLIPSTREAM_BOTH bool reads() const { return mode & 1; }
    SLIPSTREAM_BOTH bool writes() const { return mode & 2; }
    SLIPSTREAM_BOTH u32 cells() const { return static_cast<u32>(rows) * columns; }
    SLIPSTREAM_BOTH u32 cell(u32 i) const { return first + i / columns * pitch + i % columns; }
};

/// Burns `spin` rounds of time, reads, digests, burns again, writes. Blocks of a task share the writing; each reads everything.
template <class Block>
SLIPSTREAM_BODY void run_ops(Block& block, u64* cells, const cell_op* ops, u32 count, u64 number, u32 spin, u32 result)
{
    u64 burnt = number;
    for (u32 i = 0; i < spin; ++i) burnt = mix(burnt + i);
    u64 part = burnt == 0 ? 1 : 0; // practically 0: keeps the loop
    block.sync();
    for (u32 k = 0; k < count; ++k) {
        const cell_op op = ops[k];
        if (!op.reads()) continue;
        for (u32 i = block.rank(); i < op.cells(); i += block.size())
            part += mix(cells[op.cell(i)] ^ (static_cast<u64>(k) << 32 | i));
    }
    u64 digest = mix(block.reduce_add(part) ^ number * 0x9e3779b97f4a7c15ull);
    block.sync();
    burnt = digest;
    for (u32 i = 0; i < spin; ++i) burnt = mix(burnt + i);
    if (burnt == 0) digest = 1;
    for (u32 k = 0; k < count; ++k) {
        const cell_op op = ops[k];
        if (!op.writes()) continue;
        block.sync(); // of two writes to one cell the later one stays
        const u64 step = static_cast<u64>(block.size()) * block.blocks();
        for (u64 i = static_cast<u64>(block.block_index()) * block.size() + block.rank(); i < op.cells(); i += step)
            cells[op.cell(static_cast<u32>(i))] = mix(digest + k * 0x10001 + i);
    }
    if (block.block_index() == 0 && block.rank() == 0) cells[result] += digest; // running twice shows
}

/// All accesses are declared beside the task. Brief: what rows are made of.
template <bool Brief> struct listing_task {
    static constexpr const char* name = Brief ? "row" : "listed";
    static constexpr bool brief = Brief;
    u64 cells;
    u64 ops;
    u64 number;
    u32 count;
    u32 spin;
    u32 result;
    template <class Block> SLIPSTREAM_BODY void operator()(Block& block) const
    {
        run_ops(block, reinterpret_cast<u64*>(cells), reinterpret_cast<const cell_op*>(ops), count, number, spin, result);
    }
};
using listed_task = listing_task<false>;
using row_task = listing_task<true>;

/// The accesses are typed members; what they do is taken from the members as they arrived on the device.
struct member_task {
    static constexpr const char* name = "members";
    static constexpr bool brief = true;
    in<u64> a;
    in2d<u64> b;
    u64 cells;
    u64 number;
    inout<u64> c;
    u32 spin;
    out2d<u64> d;
    u32 result;

    template <class T> SLIPSTREAM_BODY cell_op op_of_tile(const T& t, access_mode mode) const
    {
        return {static_cast<u32>((reinterpret_cast<u64>(t.data()) - cells) / 8), static_cast<u16>(t.rows()),
                static_cast<u16>(t.columns()), static_cast<u16>(t.pitch() / 8), static_cast<u16>(mode)};
    }
    template <class T> SLIPSTREAM_BODY cell_op op_of_range(const T& t, access_mode mode) const
    {
        return {static_cast<u32>((reinterpret_cast<u64>(t.data()) - cells) / 8), 1, static_cast<u16>(t.size()), 0,
                static_cast<u16>(mode)};
    }
    template <class Block> SLIPSTREAM_BODY void operator()(Block& block) const
    {
        const cell_op ops[4] = {op_of_range(a, access_mode::read), op_of_tile(b, access_mode::read),
                                op_of_range(c, access_mode::read_write), op_of_tile(d, access_mode::write)};
        run_ops(block, reinterpret_cast<u64*>(cells), ops, 4, number, spin, result);
    }
};

struct stream_shape {
    u32 tasks = 1000;
    u32 threads = 1;
    u32 matrix_rows = 24;     ///< cells addressed by ranges and tiles of any kind
    u32 matrix_pitch = 32;    ///< cells
    u32 handle_tiles = 16;    ///< registered tiles, 4 x 4 cells of a second matrix that raw accesses meet as well
    u32 spin_max = 300;       ///< rounds of mix(): about 1 ns each
    u32 blocks_max = 6;
    u32 row_blocks_max = 8;   ///< of tasks in rows
    u32 many_accesses = 60;   ///< a few tasks have up to this many
    u32 whole_per_mille = 15;
};

struct planned_task {
    std::vector<cell_op> ops;  ///< what the body does; the declared ones first
    u32 declared = 0;          ///< how many of them are declared
    std::vector<u32> handles;  ///< per declared op: handle index + 1, or 0
    std::vector<u32> after;    ///< earlier tasks of the plan
    ordering order = ordering::by_access;
    bool members = false;      ///< runs as a member_task
    bool in_row = false;       ///< runs as a row_task
    u32 blocks = 1;
    u32 spin = 0;
    u32 thread = 0;
    u32 at_ring = 0;           ///< how many tasks of the same thread come before it
};

class digest_stream {
public:
    digest_stream(u64 seed, const stream_shape& shape) : shape_(shape), seed_(seed), random_(seed)
    {
        raw_cells_ = shape.matrix_rows * shape.matrix_pitch;
        handle_pitch_ = 4 * 4;
        handle_rows_ = (shape.handle_tiles + 3) / 4 * 4;
        results_ = raw_cells_ + handle_pitch_ * handle_rows_;
        plan_.resize(shape.tasks);
        for (u32 t = 0; t < shape.tasks; ++t) draw(t);
        order_threads(); // with one thread it only counts positions
        rebuild();
    }

    /// Once the plan was changed by hand.
    void rebuild()
    {
        first_op_.clear();
        ops_.assign(1, {});
        for (auto& t : plan_) {
            first_op_.push_back(static_cast<u32>(ops_.size()));
            ops_.insert(ops_.end(), t.ops.begin(), t.ops.end());
        }
    }

    u32 cells() const { return results_ + shape_.tasks; }
    const std::vector<cell_op>& ops() const { return ops_; }
    const std::vector<planned_task>& plan() const { return plan_; }
    std::vector<planned_task>& plan() { return plan_; }
    const stream_shape& shape() const { return shape_; }
    std::vector<u64> initial() const
    {
        std::vector<u64> out(cells());
        for (u32 i = 0; i < results_; ++i) out[i] = mix(i + seed_);
        return out;
    }

    /// What the cells must hold in the end.
    std::vector<u64> sequential() const
    {
        std::vector<u64> memory = initial();
        for (u32 t = 0; t < plan_.size(); ++t)
            for (u32 b = 0; b < plan_[t].blocks; ++b) {
                host_block block(b, plan_[t].blocks, nullptr, 0);
                run_ops(block, memory.data(), plan_[t].ops.data(), static_cast<u32>(plan_[t].ops.size()), number(t), 0,
                        results_ + t);
            }
        return memory;
    }

    /// Empty when equal, else where it differs first.
    std::string compare(const std::vector<u64>& got) const
    {
        const auto want = sequential();
        for (u32 t = 0; t < plan_.size(); ++t)
            if (got[results_ + t] != want[results_ + t])
                return "seed " + std::to_string(seed_) + ": digest of task " + std::to_string(t)
                    + (got[results_ + t] == 0 ? " is missing: it did not run" : " is wrong");
        for (u32 i = 0; i < results_; ++i)
            if (got[i] != want[i]) return "seed " + std::to_string(seed_) + ": cell " + std::to_string(i) + " is wrong";
        return {};
    }

    template <class Runtime> std::vector<data_handle> register_handles(Runtime& rt, u64* cells) const
    {
        std::vector<data_handle> out;
        for (u32 k = 0; k < shape_.handle_tiles; ++k)
            out.push_back(rt.register_tile(cells + handle_first(k), 32, 4, 8ull * handle_pitch_));
        return out;
    }

    /// Submits task t. rings[thread] and first[thread]: the ring of each submitting thread and the position of its first task.
    template <class Runtime>
    task_handle submit(Runtime& rt, u32 t, u64* cells, const cell_op* device_ops, const std::vector<data_handle>& handles,
                       const std::vector<u32>& rings, const std::vector<u64>& first) const
    {
        std::vector<task_handle> after;
        for (const u32 a : plan_[t].after) after.push_back({rings[plan_[a].thread], first[plan_[a].thread] + plan_[a].at_ring});
        return submit_behind(rt, t, cells, device_ops, handles, after);
    }

    /// The same, with the handles of the tasks that the plan's `after` names.
    template <class Runtime>
    task_handle submit_behind(Runtime& rt, u32 t, u64* cells, const cell_op* device_ops, const std::vector<data_handle>& handles,
                              const std::vector<task_handle>& after) const
    {
        const planned_task& p = plan_[t];
        submit_options o;
        o.blocks = p.blocks;
        o.after = after;
        o.order = p.order;
        if (p.members) {
            const auto at = [&](u32 k) { return cells + p.ops[k].first; };
            member_task task{};
            task.a = in<u64>(at(0), p.ops[0].columns);
            task.b = p.handles[1] ? in2d<u64>(handles[p.handles[1] - 1])
                                  : in2d<u64>(at(1), p.ops[1].rows, p.ops[1].columns, 8ull * p.ops[1].pitch);
            task.c = {at(2), p.ops[2].columns};
            task.d = p.handles[3] ? out2d<u64>(handles[p.handles[3] - 1])
                                  : out2d<u64>(at(3), p.ops[3].rows, p.ops[3].columns, 8ull * p.ops[3].pitch);
            task.cells = reinterpret_cast<u64>(cells);
            task.number = number(t);
            task.spin = p.spin;
            task.result = results_ + t;
            return rt.submit(task, o);
        }
        std::vector<declared_access> accesses;
        for (u32 k = 0; k < p.declared; ++k) {
            const cell_op& op = p.ops[k];
            const auto mode = static_cast<access_mode>(op.mode);
            if (p.handles[k])
                accesses.push_back(on(mode, handles[p.handles[k] - 1]));
            else
                accesses.push_back(tile(mode, cells + op.first, 8ull * op.columns, op.rows, 8ull * op.pitch));
        }
        o.accesses = accesses;
        const listed_task task{reinterpret_cast<u64>(cells), reinterpret_cast<u64>(device_ops + first_op_[t]), number(t),
                               static_cast<u32>(p.ops.size()), p.spin, results_ + t};
        if (p.in_row) return rt.submit(row_task{task.cells, task.ops, task.number, task.count, task.spin, task.result}, o);
        return rt.submit(task, o);
    }

private:
    u64 below(u64 n) { return random_() % n; }
    u64 number(u32 t) const { return mix(seed_ * 1000003 + t) | 1; }
    u32 handle_first(u32 k) const { return raw_cells_ + k / 4 * 4 * handle_pitch_ + k % 4 * 4; }

    cell_op draw_range(u16 mode)
    {
        const u32 limit = raw_cells_ + handle_pitch_ * handle_rows_; // ranges meet the registered tiles too
        const u32 columns = below(20) == 0 ? 0 : 1 + static_cast<u32>(below(below(10) == 0 ? 100 : 12));
        return {static_cast<u32>(below(limit - 100)), 1, static_cast<u16>(columns), 0, mode};
    }
    cell_op draw_tile(u16 mode)
    {
        // Mostly the matrix's own pitch, sometimes another: rectangles that wrap or of unequal pitch.
        const u32 pitch = below(5) == 0 ? 9 + static_cast<u32>(below(8)) : shape_.matrix_pitch;
        const u32 rows = 1 + static_cast<u32>(below(5)), columns = 1 + static_cast<u32>(below(8));
        const u32 room = raw_cells_ - ((rows - 1) * pitch + columns);
        return {static_cast<u32>(below(room)), static_cast<u16>(rows), static_cast<u16>(columns), static_cast<u16>(pitch), mode};
    }
    cell_op tile_of_handle(u32 k, u16 mode) const
    {
        return {handle_first(k), 4, 4, static_cast<u16>(handle_pitch_), mode};
    }

    void draw(u32 t)
    {
        planned_task& p = plan_[t];
        if (row_left_ == 0 && below(100) == 0) {
            row_left_ = 2 + static_cast<u32>(below(24));
            row_blocks_ = 2 + static_cast<u32>(below(shape_.row_blocks_max - 1));
            row_thread_ = static_cast<u32>(below(shape_.threads));
            row_wrote_ = draw_range(1);
        }
        if (row_left_ != 0 && below(12) != 0) return draw_row(p);
        p.thread = static_cast<u32>(below(shape_.threads));
        p.spin = below(8) == 0 ? static_cast<u32>(below(shape_.spin_max * 8 + 1)) : static_cast<u32>(below(shape_.spin_max + 1));
        const u32 kind = static_cast<u32>(below(1000));
        if (kind < shape_.whole_per_mille) {
            p.order = ordering::whole_memory;
            const u32 count = static_cast<u32>(below(4));
            for (u32 k = 0; k < count; ++k) p.ops.push_back(draw_range(static_cast<u16>(1 + below(3)))); // undeclared
        } else if (kind < shape_.whole_per_mille + 40) {
            p.order = ordering::no_access;
        } else if (kind < shape_.whole_per_mille + 240) {
            p.members = true;
            p.ops = {draw_range(1), draw_tile(1), draw_range(3), draw_tile(2)};
            p.handles = {0, 0, 0, 0};
            if (below(3) == 0) {
                p.handles[1] = 1 + static_cast<u32>(below(shape_.handle_tiles));
                p.ops[1] = tile_of_handle(p.handles[1] - 1, 1);
            }
            if (below(3) == 0) {
                p.handles[3] = 1 + static_cast<u32>(below(shape_.handle_tiles));
                p.ops[3] = tile_of_handle(p.handles[3] - 1, 2);
            }
            p.declared = 4;
        } else {
            u32 count = 1 + static_cast<u32>(below(5));
            if (below(50) == 0) count = 1 + static_cast<u32>(below(shape_.many_accesses));
            for (u32 k = 0; k < count; ++k) {
                const u16 mode = static_cast<u16>(1 + below(3));
                const u32 which = static_cast<u32>(below(3));
                u32 handle = 0;
                if (which == 0) {
                    p.ops.push_back(draw_range(mode));
                } else if (which == 1) {
                    p.ops.push_back(draw_tile(mode));
                } else {
                    handle = 1 + static_cast<u32>(below(shape_.handle_tiles));
                    p.ops.push_back(tile_of_handle(handle - 1, mode));
                }
                p.handles.push_back(handle);
            }
            p.declared = count;
        }
        // `after`, and the result of the named task is read: it shows that the order was kept. Some have neither accesses nor that.
        if (t > 0 && !p.members && below(p.order == ordering::no_access ? 2 : 8) == 0)
            for (u32 k = 1 + static_cast<u32>(below(3)); k > 0; --k) {
                const u32 a = t - 1 - static_cast<u32>(below(std::min<u32>(t, below(4) ? 30 : 3000)));
                p.after.push_back(a);
                p.ops.push_back({results_ + a, 1, 1, 0, 1});
            }
        if (below(6) == 0 && blocks_may_split(p)) p.blocks = 1 + static_cast<u32>(below(shape_.blocks_max));
    }

    /// The next task of the row in hand: brief, of several blocks, mostly behind the one before. They are mailed to all workers
    /// at once (device/broadcast.hpp).
    void draw_row(planned_task& p)
    {
        --row_left_;
        p.in_row = true;
        p.thread = row_thread_;
        p.spin = static_cast<u32>(below(shape_.spin_max + 1));
        if (below(8) != 0) p.ops.push_back(row_wrote_);
        if (below(2) == 0) p.ops.push_back(below(2) ? draw_range(1) : draw_tile(1));
        p.ops.push_back(below(2) ? draw_range(2) : draw_tile(2));
        p.declared = static_cast<u32>(p.ops.size());
        p.handles.assign(p.declared, 0);
        row_wrote_ = p.ops.back();
        row_wrote_.mode = 1;
        if (blocks_may_split(p)) p.blocks = row_blocks_;
    }

    /// Blocks share the writes and each reads everything: only where no own write meets another own access.
    bool blocks_may_split(const planned_task& p) const
    {
        std::vector<u8> written(results_), touched(results_);
        for (const auto& op : p.ops) {
            if (op.first >= results_) continue;
            for (u32 i = 0; i < op.cells(); ++i) {
                const u32 c = op.cell(i);
                if (written[c] || (op.writes() && (touched[c] || op.reads()))) return false;
                touched[c] = 1;
                written[c] = op.writes();
            }
        }
        return true;
    }

    /// Adds the `after` entries that make the plan's order binding across threads.
    void order_threads()
    {
        struct user {
            u32 task;
            bool writes;
        };
        std::vector<std::vector<user>> users(results_);
        std::vector<u32> at_ring(shape_.threads);
        std::vector<int> last_of(shape_.threads, -1);
        int last_whole = -1;
        std::vector<int> whole_seen(shape_.threads, -1);
        for (u32 t = 0; t < plan_.size(); ++t) {
            planned_task& p = plan_[t];
            p.at_ring = at_ring[p.thread]++;
            std::vector<u32> before;
            const auto name = [&](int a) {
                if (a >= 0 && plan_[static_cast<u32>(a)].thread != p.thread) before.push_back(static_cast<u32>(a));
            };
            for (const auto& op : p.ops) {
                if (op.first >= results_) continue;
                for (u32 i = 0; i < op.cells(); ++i) {
                    auto& list = users[op.cell(i)];
                    for (const user& u : list)
                        if (u.task != t && (op.writes() || u.writes)) name(static_cast<int>(u.task));
                    if (op.writes()) list.clear();
                    list.push_back({t, op.writes()});
                }
            }
            if (p.order == ordering::whole_memory) {
                for (const int a : last_of) name(a);
                last_whole = static_cast<int>(t);
            } else if (whole_seen[p.thread] < last_whole) {
                name(last_whole);
            }
            whole_seen[p.thread] = last_whole;
            last_of[p.thread] = static_cast<int>(t);
            std::sort(before.begin(), before.end());
            before.erase(std::unique(before.begin(), before.end()), before.end());
            p.after.insert(p.after.end(), before.begin(), before.end());
        }
    }

    stream_shape shape_;
    u64 seed_;
    std::mt19937_64 random_;
    u32 raw_cells_ = 0, handle_pitch_ = 0, handle_rows_ = 0, results_ = 0;
    u32 row_left_ = 0, row_blocks_ = 0, row_thread_ = 0; ///< the row in hand
    cell_op row_wrote_{};                                ///< what its last task wrote
    std::vector<planned_task> plan_;
    std::vector<cell_op> ops_;
    std::vector<u32> first_op_;
};

/// Runs a stream and returns what compare() says. between(t) is called by the submitting thread before task t. The main
/// thread is the first of the planned threads; uploads and downloads use its ring as well.
template <class Runtime, class Between>
std::string run_stream(Runtime& rt, const digest_stream& stream, Between between)
{
    const u32 threads = stream.shape().threads;
    std::vector<u64> memory = stream.initial();
    buffer<u64> cells(rt, memory.size());
    buffer<cell_op> ops(rt, stream.ops().size());
    ops.upload(stream.ops());
    cells.upload(memory);
    const auto handles = stream.register_handles(rt, cells.data());
    // Every thread takes its ring with a marker, so that all positions are known before the first task.
    std::vector<u32> rings(threads);
    std::vector<u64> first(threads);
    const task_handle mine = rt.submit(marker_task{});
    rings[0] = mine.ring;
    first[0] = mine.position + 1;
    (void)rt.wait(mine); // a whole-memory task: memory is in place
    std::atomic<u32> ready{1};
    std::vector<std::exception_ptr> errors(threads);
    const auto submit_all = [&](u32 thread) {
        try {
            if (thread != 0) {
                const task_handle h = rt.submit(marker_task{}, {.order = ordering::no_access});
                rings[thread] = h.ring;
                first[thread] = h.position + 1;
                ready.fetch_add(1);
            }
            while (ready.load() < threads) std::this_thread::yield();
            for (u32 t = 0; t < stream.plan().size(); ++t)
                if (stream.plan()[t].thread == thread) {
                    between(t);
                    stream.submit(rt, t, cells.data(), ops.data(), handles, rings, first);
                }
        } catch (...) {
            errors[thread] = std::current_exception();
            ready.fetch_add(threads);
        }
    };
    std::vector<std::thread> others;
    for (u32 thread = 1; thread < threads; ++thread) others.emplace_back(submit_all, thread);
    submit_all(0);
    for (auto& t : others) t.join();
    for (const auto& e : errors)
        if (e) std::rethrow_exception(e);
    rt.wait_all();
    cells.download(memory);
    return stream.compare(memory);
}

/// Submits a stream over memory that is none of a pool's and holds its initial cells: pieces of it are placed in the engine's
/// parts at random. One thread. Returns when all of it is done.
template <class Runtime, class Between>
void submit_in_parts(Runtime& rt, const digest_stream& stream, u64* cells, std::mt19937_64& random, Between between)
{
    const auto any_part = [&] { return static_cast<u32>(random() % rt.parts()); };
    // The matrix in pieces of any size, some of them nobody's; of the tiles, those that share their rows together.
    const u32 matrix = stream.shape().matrix_rows * stream.shape().matrix_pitch;
    for (u32 at = 0; at < matrix;) {
        const u32 piece = std::min(matrix - at, 1 + static_cast<u32>(random() % 120));
        if (random() % 5 != 0) rt.place(cells + at, 8ull * piece, any_part());
        at += piece;
    }
    constexpr u32 cells_of_a_row_of_tiles = 64;
    for (u32 k = 0; k < stream.shape().handle_tiles; k += 4)
        rt.place(cells + matrix + k / 4 * cells_of_a_row_of_tiles, 8 * cells_of_a_row_of_tiles, any_part());
    const auto handles = stream.register_handles(rt, cells);
    buffer<cell_op> ops(rt, stream.ops().size());
    (void)rt.wait(ops.upload(stream.ops())); // all parts read it, and none declares that
    std::vector<task_handle> submitted;
    for (u32 t = 0; t < stream.plan().size(); ++t) {
        between(t);
        std::vector<task_handle> after;
        for (const u32 a : stream.plan()[t].after) after.push_back(submitted[a]);
        submitted.push_back(stream.submit_behind(rt, t, cells, ops.data(), handles, after));
    }
    rt.wait_all();
}

/// The same over host memory, for the host device; what compare() says.
template <class Runtime, class Between>
std::string run_stream_in_parts(Runtime& rt, const digest_stream& stream, std::mt19937_64& random, Between between)
{
    std::vector<u64> cells = stream.initial();
    submit_in_parts(rt, stream, cells.data(), random, between);
    return stream.compare(cells);
}

} // namespace slipstream::tests
