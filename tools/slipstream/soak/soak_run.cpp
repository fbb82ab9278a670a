// Submission by several threads, parks at random points, comparison.
#include "tools/slipstream/soak/soak_run.hpp"
#include "tools/slipstream/soak/soak_image.hpp"
#include "tools/slipstream/soak/soak_placement.hpp"
#include <algorithm>
#include <exception>

namespace slipstream::soak {
namespace {

using namespace std::chrono_literals;

constexpr u32 cells_max = raw_first + (1u << 16);
/// What a task hides shows only while the task before it runs.
constexpr u32 late_steps_host = 16'000'000, late_steps_gpu = 4'000'000;

/// A range that reaches into several parts is an access for each piece of it; a task with more would be a whole-memory
/// task, which fails for more.
constexpr u32 pieces_of_a_task_max = 4096;

/// A row's tasks have 8 blocks each, or up to 200 for a while.
constexpr u32 results_max_of(u32 tasks) { return 16 * tasks + 8192; }
static_assert(results_max_of(stream_tasks_max) == soak_key::results_max);
u32 op_words_max_of(u32 tasks) { return 24 * tasks + 65536; } ///< 12 bytes an operation, in words of 8

config configuration_of(const soak_case& c, const std::string& device, std::chrono::seconds stall_limit, u32 tasks_max)
{
    config out;
    out.device = device;
    out.window = c.window;
    out.ring_slots = c.ring;
    out.rings = c.threads;
    out.parts = c.parts;
    if (c.parts > 1) out.accesses_max = pieces_of_a_task_max;
    out.workers_per_sm = c.per_sm;
    out.host_workers = c.workers;
    out.residency = std::chrono::milliseconds(c.residency_ms);
    out.staging = c.staging != 0;
    out.chaining = c.chaining != 0;
    out.bypass = c.bypass != 0;
    out.broadcast = c.broadcast != 0;
    out.handles_max = banks * bank_handles;
    out.memory_bytes = 8ull * (cells_max + results_max_of(tasks_max) + op_words_max_of(tasks_max)) + (1u << 16);
    out.staging_bytes = 4u << 20;
    out.stall_limit = stall_limit;
    return out;
}

host::beginning beginning_of(const soak_case& c)
{
    host::beginning b;
    b.position = c.start;
    b.any_size = true;
    return b;
}

} // namespace

soak_engine::soak_engine(const soak_case& c, const std::string& device, std::chrono::seconds stall_limit, u32 tasks_max)
    : case_(c), submitters_(c.threads)
{
    const config wanted = configuration_of(c, device, stall_limit, tasks_max);
    if (c.parts > 1)
        parts_ = std::make_unique<host::partitioned_core>(wanted, soak_image());
    else
        core_ = std::make_unique<host::runtime_core>(wanted, soak_image(), beginning_of(c));
    cells_held_ = cells_max;
    results_held_ = results_max_of(tasks_max);
    ops_held_ = op_words_max_of(tasks_max);
    board_ = reinterpret_cast<u64>(take((sizeof(soak_board) + 7) / 8));
    cells_ = reinterpret_cast<u64>(parts_ ? take_placed(cells_held_) : take(cells_held_));
    if (parts_) gathered_ = reinterpret_cast<u64>(take(cells_held_));
    results_ = reinterpret_cast<u64>(take(results_held_));
    ops_ = reinterpret_cast<u64>(take(ops_held_));
    for (u32 h = 0; h < banks * bank_handles; ++h) {
        const soak_op op = op_of_handle(h, 0);
        handles_.push_back(on_engine([&](auto& e) {
            return e.register_range(reinterpret_cast<u64*>(cells_) + op.first, 8u * op.columns, op.rows, 8u * op.pitch);
        }));
    }
    if (c.parks)
        parker_ = std::thread([this] {
            soak_random random(case_.seed);
            try {
                while (!over_.load(std::memory_order_relaxed)) {
                    std::this_thread::sleep_for(std::chrono::microseconds(random.below(2000)));
                    on_engine([](auto& e) { e.pause(); });
                    pauses_.fetch_add(1, std::memory_order_relaxed);
                    if (random.below(2)) std::this_thread::sleep_for(std::chrono::microseconds(random.below(300)));
                    on_engine([](auto& e) { e.resume(); });
                }
            } catch (const error&) { // the device was lost: the submitting threads are told
            }
        });
}

soak_engine::~soak_engine() { end_parks(); }

void soak_engine::end_parks()
{
    over_ = true;
    if (parker_.joinable()) parker_.join();
}

u64 soak_engine::end_and_count_broadcasts()
{
    end_parks();
    if (parts_) return 0;
    core_->pause();
    return core_->broadcasts();
}

u64* soak_engine::take(u64 words)
{
    return static_cast<u64*>(parts_ ? parts_->allocate(8 * words, 0) : core_->allocate(8 * words));
}

/// Outside of the pools, so that it may lie in several parts. No kernel is launched before the first task: the backend
/// is this thread's.
u64* soak_engine::take_placed(u64 words)
{
    auto* const memory = static_cast<u64*>(device().take_device(8 * words));
    for (const placed_cells& p : draw_placement(case_.parts, case_.placement, static_cast<u32>(words)))
        parts_->place(memory + p.first, 8ull * p.count, p.part);
    return memory;
}

task_handle soak_engine::submit(u32 type, const void* task, const submit_options& options)
{
    task_handle handle;
    (void)on_engine([&](auto& e) { return e.submit(type, task, options, true, handle); });
    return handle;
}

task_status soak_engine::wait(task_handle handle)
{
    return on_engine([&](auto& e) { return e.wait(handle, deadline::max()); });
}

task_handle soak_engine::handle_of(const soak_stream& stream, u32 task) const
{
    if (parts_) return submitted_[task];
    const planned_task& p = stream.tasks()[task];
    return {submitters_[p.thread].ring, submitters_[p.thread].first + p.at_ring};
}

void soak_engine::submit_share(const soak_stream& stream, u32 thread)
{
    submit_options o;
    o.order = ordering::no_access;
    const task_handle mark = submit(type_marker, nullptr, o);
    submitters_[thread] = {mark.ring, mark.position + 1};
    ready_.fetch_add(1, std::memory_order_acq_rel);
    while (ready_.load(std::memory_order_acquire) < case_.threads) std::this_thread::yield();
    std::vector<task_handle> after;
    std::vector<declared_access> accesses;
    auto* const cells = reinterpret_cast<u64*>(cells_);
    const u32 late_steps = device().is_cuda() ? late_steps_gpu : late_steps_host;
    for (const u32 t : stream.tasks_of(thread)) {
        const planned_task& p = stream.tasks()[t];
        const soak_op* const ops = stream.ops().data() + p.first_op;
        const soak_key key = soak_key::make(board_, p.result, p.spin);
        o.blocks = p.blocks;
        o.order = p.whole ? ordering::whole_memory : p.no_access ? ordering::no_access : ordering::by_access;
        after.clear();
        for (u32 k = 0; k < p.afters; ++k) after.push_back(handle_of(stream, stream.after(p.first_after + k)));
        o.after = after;
        o.accesses = {};
        const auto range = [&]<access_mode Mode>(u32 k, array_access<u64, Mode>& to) {
            const u32 h = stream.handle_plus_one(p.first_op + k);
            to = h ? array_access<u64, Mode>(handles_[h - 1]) : array_access<u64, Mode>(cells + ops[k].first, ops[k].columns);
        };
        const auto tile = [&]<access_mode Mode>(u32 k, tile_access<u64, Mode>& to) {
            const u32 h = stream.handle_plus_one(p.first_op + k);
            to = h ? tile_access<u64, Mode>(handles_[h - 1])
                   : tile_access<u64, Mode>(cells + ops[k].first, ops[k].rows, ops[k].columns, 8u * ops[k].pitch);
        };
        const auto note = [&](task_handle handle) {
            if (parts_) submitted_[t] = handle;
        };
        const auto give = [&]<class Task>(u32 type, const Task& task) { note(submit(type, &task, o)); };
        const auto two = [&]<class Task>(u32 type, Task task, const auto& set) {
            set(0, task.a);
            set(1, task.b);
            task.key = key;
            give(type, task);
        };
        switch (p.kind) {
        case task_kind::move: two(type_move, move_task{}, range); break;
        case task_kind::update: two(type_update, update_task{}, range); break;
        case task_kind::tile: two(type_tile, tile_task{}, tile); break;
        case task_kind::join: {
            join_task task{};
            range(0, task.a);
            range(1, task.b);
            range(2, task.c);
            task.key = key;
            give(type_join, task);
            break;
        }
        case task_kind::add: {
            add_task task{{}, key};
            range(0, task.sum);
            give(type_add, task);
            break;
        }
        case task_kind::clear:
            note(on_engine([](auto& e) { return e.clear_failure(); }));
            break;
        case task_kind::row:
        case task_kind::listed: {
            accesses.clear();
            for (u32 k = 0; k < p.declared; ++k) {
                const auto mode = static_cast<access_mode>(ops[k].mode & 3);
                const u32 h = stream.handle_plus_one(p.first_op + k);
                accesses.push_back(h ? on(mode, handles_[h - 1])
                                     : slipstream::tile(mode, cells + ops[k].first, 8ull * ops[k].columns, ops[k].rows,
                                                        8ull * ops[k].pitch));
            }
            o.accesses = accesses;
            const u32 code = p.fails ? t + 1 : 0, wait = p.late ? late_steps : 0;
            if (p.kind == task_kind::row)
                give(type_row, row_task{key, p.first_op, p.ops, code, wait});
            else
                give(type_listed, listed_task{key, p.first_op, p.ops, code, wait});
            break;
        }
        }
    }
}

std::string soak_engine::judge_statuses(const soak_stream& stream)
{
    for (u32 thread = 0; thread < case_.threads; ++thread)
        for (const u32 t : stream.tasks_of(thread)) {
            const outcome want = stream.expected(t);
            const task_status got = on_engine([&](auto& e) { return e.query(handle_of(stream, t)); });
            const task_state state = want == outcome::good     ? task_state::complete
                                     : want == outcome::failed ? task_state::failed
                                                               : task_state::cancelled;
            const auto wrong = [&](const std::string& what) {
                return stream.describe(t) + ": state " + std::to_string(static_cast<u32>(got.state)) + ", code "
                       + std::to_string(got.code) + ", " + what;
            };
            if (got.state != state) return wrong("expected state " + std::to_string(static_cast<u32>(state)));
            if (want == outcome::good) continue;
            // The cause is a failed task of this stream, and its code says which.
            const u32 cause = got.code - 1;
            const bool known = got.code != 0 && cause < stream.tasks().size() && stream.expected(cause) == outcome::failed;
            if (!known || (want == outcome::failed && cause != t) || got.cause != handle_of(stream, cause))
                return wrong("which is no cause of it");
        }
    return {};
}

/// What is downloaded lies in one part. A whole-memory task: it waits for all of them.
u64 soak_engine::gather(u32 cells)
{
    const u64 bytes = 8ull * cells;
    const copy_task copy{{reinterpret_cast<unsigned char*>(cells_), bytes}, {reinterpret_cast<unsigned char*>(gathered_), bytes}};
    submit_options o;
    o.blocks = 16;
    o.order = ordering::whole_memory;
    if (const task_status status = wait(submit(type_copy, &copy, o)); !status.ok())
        throw task_error("nothing has failed, and yet a copy of all cells did not run", status);
    return gathered_;
}

std::string soak_engine::run(const soak_stream& stream)
{
    if (stream.results() > results_held_ || (stream.ops().size() * sizeof(soak_op) + 7) / 8 > ops_held_
        || stream.results() > soak_key::results_max)
        throw config_error("a stream of " + std::to_string(stream.tasks().size())
                           + " tasks has too many accesses or blocks for this soak");
    const soak_board board{cells_, results_, ops_, stream.salt()};
    const auto upload = [&](u64 to, const void* from, u64 bytes) {
        on_engine([&](auto& e) { e.upload(reinterpret_cast<void*>(to), from, bytes); });
    };
    upload(board_, &board, sizeof board);
    if (!stream.ops().empty()) upload(ops_, stream.ops().data(), stream.ops().size() * sizeof(soak_op));
    const reset_task reset{{reinterpret_cast<u64*>(cells_), stream.cells()},
                           {reinterpret_cast<u64*>(results_), stream.results()},
                           stream.salt()};
    submit_options o;
    o.blocks = 16;
    if (parts_) o.order = ordering::whole_memory; // its cells lie in thousands of pieces
    submit(type_reset, &reset, o);
    (void)wait(submit(type_marker, nullptr, {})); // a whole-memory task: memory is in place
    if (parts_) submitted_.assign(stream.tasks().size(), {});

    ready_ = 0;
    std::vector<std::exception_ptr> errors(case_.threads);
    const auto part = [&](u32 thread) {
        try {
            submit_share(stream, thread);
        } catch (...) {
            errors[thread] = std::current_exception();
            ready_.fetch_add(case_.threads);
        }
    };
    std::vector<std::thread> others;
    for (u32 thread = 1; thread < case_.threads; ++thread) others.emplace_back(part, thread);
    part(0);
    for (auto& t : others) t.join();
    for (const auto& e : errors)
        if (e) std::rethrow_exception(e);
    on_engine([](auto& e) { return e.wait_all(deadline::max()); });

    std::string verdict = stream.fails() ? judge_statuses(stream) : std::string();
    if (stream.fails()) on_engine([](auto& e) { e.clear_failure(); });
    std::vector<u64> cells(stream.cells()), results(stream.results());
    try {
        const auto download = [&](std::vector<u64>& to, u64 from) {
            on_engine([&](auto& e) { e.download(to.data(), reinterpret_cast<void*>(from), 8 * to.size()); });
        };
        download(cells, parts_ ? gather(stream.cells()) : cells_);
        download(results, results_);
    } catch (const task_error& e) { // nothing has failed that was not cleared: memory that counts as failed is a finding
        return verdict.empty() ? e.what() : verdict;
    }
    if (verdict.empty()) verdict = stream.compare(cells, results);
    return verdict;
}

} // namespace slipstream::soak
