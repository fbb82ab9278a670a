#include "workloads/replay/replay.hpp"
#include "host/trace/cells.hpp"
#include "workloads/digest/digest_board.hpp"
#include "workloads/replay/calibration.hpp"
#include "workloads/replay/replay_task.hpp"
#include "workloads/replay/resident_times.hpp"
#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <tuple>

namespace slipstream::workloads {
namespace {

// More blocks than this keep any GPU busy; the host runs them one after the other, so there it is a matter of patience.
constexpr u32 blocks_max_cuda = 65536;
constexpr u32 blocks_max_host = 256;
constexpr double assumed_us = 5;              // of a task without a recorded duration
constexpr u64 assumed_bytes_per_block = 32768; // grid of a copy or of an operator whose kernels are not known
constexpr u32 assumed_blocks_max = 128;
constexpr u32 iterations_on_host = 64;
constexpr std::size_t name_bytes_max = 80;    // demangled kernel names go on for pages
constexpr std::size_t classes_max = 400;      // about ten launches of up to 16 bodies each: seconds
constexpr double paced_us_max = 600e6;
// How long block 0 of the held task takes in a run with a broken edge: longer than all that lies between. About 2 ns each.
constexpr u32 hold_cuda = 20'000'000;
constexpr u32 hold_host = 60'000'000;

std::string count_of(u64 n, const char* what) { return std::to_string(n) + " " + what + (n == 1 ? "" : "s"); }

std::string megabytes(u64 bytes)
{
    char text[32];
    std::snprintf(text, sizeof text, "%.1f MB", static_cast<double>(bytes) / 1e6);
    return text;
}

u64 grid_of(const trace::recorded_task& t)
{
    if (t.kind == trace::task_kind::kernel) return std::max<u64>(1, u64{t.grid[0]} * t.grid[1] * std::max(t.grid[2], 1u));
    return std::clamp<u64>((t.moved_bytes + assumed_bytes_per_block - 1) / assumed_bytes_per_block, 1, assumed_blocks_max);
}

double duration_of(const trace::recorded_task& t) { return t.duration_known ? t.duration_us : assumed_us; }

std::vector<std::vector<trace::byte_access>> ranges_of(const trace::recorded_trace& recorded)
{
    std::vector<std::vector<trace::byte_access>> out;
    out.reserve(recorded.tasks.size());
    for (const auto& t : recorded.tasks) out.push_back(t.accesses);
    return out;
}

} // namespace

struct replay::state {
    engines::device_memory* device;
    std::deque<std::string> names;
    std::unique_ptr<digest_board> board; ///< cells, program, oracle
    solo_times solo;
    std::vector<std::string> notes;
    std::vector<u32> blocks;             ///< by task
    std::vector<u32> class_of;           ///< by task
    std::vector<calibrated_work> work;   ///< by class, scratch not yet given out
    u64 scratch_bytes = 0;
    void* scratch = nullptr;

    void choose_blocks(const trace::recorded_trace& recorded);
    void build_board(const trace::recorded_trace& recorded);
    void make_classes(const trace::recorded_trace& recorded);
    void calibrate_classes(const replay_options& options);
    void measure_resident(const replay_options& options);
    void give_out_work();
    void describe(const trace::recorded_trace& recorded);

    /// The task of a class that is measured: with work `w`, over the first of the scratch memory.
    replay_task example_of(u32 index, calibrated_work w) const
    {
        replay_task out;
        std::memcpy(&out, board->arguments(solo.classes[index].example), sizeof out);
        w.scratch = reinterpret_cast<u64>(scratch);
        out.work = w;
        return out;
    }
};

void replay::state::choose_blocks(const trace::recorded_trace& recorded)
{
    const u32 blocks_max = device->is_cuda() ? blocks_max_cuda : blocks_max_host;
    u64 capped = 0, most = 0;
    for (const auto& t : recorded.tasks) {
        const u64 grid = grid_of(t);
        most = std::max(most, grid);
        capped += grid > blocks_max;
        blocks.push_back(static_cast<u32>(std::min<u64>(grid, blocks_max)));
    }
    if (capped != 0)
        notes.push_back(count_of(capped, "task") + " with more than " + std::to_string(blocks_max) + " blocks (up to "
                        + std::to_string(most) + ") run with " + std::to_string(blocks_max));
}

// Hazards between byte ranges become hazards between cells. What `after` orders is not declared to anybody, but checked: each
// task that others wait for writes a cell that only they read.
void replay::state::build_board(const trace::recorded_trace& recorded)
{
    const auto ranges = ranges_of(recorded);
    const trace::cell_map cells = trace::cut_into_cells(ranges);
    std::vector<bool> waited_for(recorded.tasks.size(), false);
    for (const auto& t : recorded.tasks)
        for (const u32 p : t.after) waited_for[p] = true;
    std::vector<u64> own_cell(recorded.tasks.size(), 0);
    u64 all_cells = cells.cells;
    for (std::size_t i = 0; i < waited_for.size(); ++i)
        if (waited_for[i]) own_cell[i] = all_cells++;
    // 32 bits number a cell; the board also wants memory to exist.
    if (all_cells > ~u32{0} || cells.cell_visits > ~u32{0})
        throw config_error("this trace cuts memory into " + std::to_string(all_cells) + " pieces, more than the replay can number; "
                           "replay a shorter recording");
    board = std::make_unique<digest_board>(*device, replay_image(), static_cast<u32>(std::max<u64>(all_cells, 2)));
    std::vector<cell_access> declared, hidden;
    for (std::size_t i = 0; i < recorded.tasks.size(); ++i) {
        const trace::recorded_task& t = recorded.tasks[i];
        declared.clear();
        hidden.clear();
        for (const trace::cell_access& a : cells.tasks[i])
            declared.push_back({static_cast<access_mode>((a.reads ? 1 : 0) | (a.writes ? 2 : 0)), static_cast<u32>(a.cell_first),
                                static_cast<u32>(a.cell_count)});
        if (waited_for[i]) hidden.push_back({access_mode::write, static_cast<u32>(own_cell[i]), 1});
        for (const u32 p : t.after) hidden.push_back({access_mode::read, static_cast<u32>(own_cell[p]), 1});
        digest_step step;
        step.declared = declared;
        step.hidden = hidden;
        step.after = t.after;
        step.blocks = blocks[i];
        step.order = declared.empty() ? ordering::no_access : ordering::by_access;
        step.name = names.emplace_back(t.name.substr(0, name_bytes_max));
        board->add(step);
    }
    replay_task task{};
    board->finish([&](u32, const digest_share& share) {
        task.share = share;
        return shaped_task{replay_task_type, &task};
    });
}

void replay::state::make_classes(const trace::recorded_trace& recorded)
{
    const auto bucket = [](double value, double step) { return value <= 0 ? -1000000L : std::lround(std::log(value) / step); };
    const std::span<const engines::program_task> tasks = board->program().tasks();
    // Bytes exactly and times within 1 % at first; coarser where that makes too many classes.
    for (double step = 0.01;; step *= 2) {
        const bool exact_bytes = step < 0.015;
        std::map<std::tuple<u32, long, u64, u32>, u32> index;
        solo.classes.clear();
        class_of.clear();
        for (u32 i = 0; i < tasks.size(); ++i) {
            const trace::recorded_task& t = recorded.tasks[i];
            const u64 bytes = exact_bytes ? t.moved_bytes
                                          : static_cast<u64>(1000000 + bucket(static_cast<double>(t.moved_bytes), step));
            const u32 runs = static_cast<const replay_task*>(board->arguments(i))->share.run_count;
            const auto key = std::tuple(blocks[i], bucket(duration_of(t), step), bytes,
                                        runs < 8 ? 0 : static_cast<u32>(std::log2(runs)));
            const auto [it, fresh] = index.try_emplace(key, static_cast<u32>(solo.classes.size()));
            if (fresh) {
                solo.classes.emplace_back();
                solo.classes.back().example = i;
                solo.classes.back().blocks = blocks[i];
            }
            solo_class& c = solo.classes[it->second];
            ++c.tasks;
            c.recorded_us += duration_of(t);
            c.recorded_bytes += t.moved_bytes;
            class_of.push_back(it->second);
        }
        if (solo.classes.size() <= classes_max || step > 4) break;
    }
    for (solo_class& c : solo.classes) {
        c.recorded_us /= c.tasks;
        c.recorded_bytes /= c.tasks;
    }
}

void replay::state::calibrate_classes(const replay_options& options)
{
    work.assign(solo.classes.size(), {});
    if (!device->is_cuda()) {
        for (calibrated_work& w : work) w.iterations = iterations_on_host;
        for (solo_class& c : solo.classes) c.iterations = iterations_on_host;
        notes.push_back("host device: bodies compute their digest and a few operations; nothing is calibrated "
                        "and no bytes are streamed");
        return;
    }
    u64 largest = 0, all = 0;
    for (const solo_class& c : solo.classes) {
        const u64 bytes = work_that_moves(c.recorded_bytes, c.blocks).bytes_of_scratch(c.blocks) + 256;
        largest = std::max(largest, bytes);
        all += bytes * c.tasks;
    }
    scratch_bytes = std::max(largest, std::min(all, scratch_bytes_total));
    scratch = device->take(scratch_bytes);

    const auto timer = make_launch_timer(board->program().image(), static_cast<int>(device->ordinal()));
    if (!timer) throw device_error("calibration: this build has no CUDA");
    const unsigned char no_members[8] = {};
    solo.floor_us = timer->run(board->program().image().types - 1, no_members, 1, 1);
    u64 short_tasks = 0, starved_tasks = 0, bytes_wanted = 0, bytes_moved = 0;
    double short_extra_us = 0;
    for (std::size_t i = 0; i < work.size(); ++i) {
        solo_class& c = solo.classes[i];
        replay_task task;
        const calibration_target target{replay_task_type, c.blocks, c.recorded_us, c.recorded_bytes, [&](const calibrated_work& w) {
                                            task = example_of(static_cast<u32>(i), w);
                                            return static_cast<const void*>(&task);
                                        }};
        const calibrated found = calibrate(*timer, target);
        work[i] = found.work;
        c.iterations = found.work.iterations;
        c.moved_bytes = found.work.bytes_moved(c.blocks);
        c.launched_us = found.launched_us;
        if (found.too_short) {
            short_tasks += c.tasks;
            short_extra_us += c.tasks * (c.launched_us - c.recorded_us);
        }
        if (found.fewer_bytes) {
            starved_tasks += c.tasks;
            bytes_wanted += c.tasks * c.recorded_bytes;
            bytes_moved += c.tasks * c.moved_bytes;
        }
        if (options.progress) options.progress(static_cast<double>(i + 1), static_cast<double>(work.size()));
    }
    char text[256];
    if (short_tasks != 0) {
        std::snprintf(text, sizeof text,
                      "%llu tasks are shorter than our kernel with nothing but its digest (an empty one takes %.2f us here): "
                      "no work is added, together they take %.1f us longer than recorded",
                      static_cast<unsigned long long>(short_tasks), solo.floor_us, short_extra_us);
        notes.push_back(text);
    }
    if (starved_tasks != 0)
        notes.push_back(count_of(starved_tasks, "task") + " touch more bytes than their recorded time can move (gathers from "
                        "large tables, hits in L2, tasks at the launch floor): time has priority, they move "
                        + megabytes(bytes_moved) + " of " + megabytes(bytes_wanted));
    if (all > scratch_bytes)
        notes.push_back("bodies stream through " + megabytes(scratch_bytes)
                        + " of scratch memory in turn; nobody looks at its contents");
}

void replay::state::measure_resident(const replay_options& options)
{
    solo.measured = device->is_cuda();
    for (const solo_class& c : solo.classes) solo.recorded_us += c.recorded_us * c.tasks;
    if (!solo.measured) return;
    std::vector<replay_task> tasks;
    std::vector<solo_request> requests;
    tasks.reserve(work.size());
    for (u32 i = 0; i < work.size(); ++i) {
        tasks.push_back(example_of(i, work[i]));
        requests.push_back({replay_task_type, &tasks.back(), solo.classes[i].blocks});
    }
    const std::vector<double> us = resident_times(options.resident, board->program().image(), requests);
    bool complete = true;
    for (std::size_t i = 0; i < us.size(); ++i) {
        solo_class& c = solo.classes[i];
        c.resident_us = us[i];
        complete &= us[i] > 0;
        solo.launched_us += c.launched_us * c.tasks;
        solo.resident_us += c.resident_us * c.tasks;
    }
    if (!complete) notes.push_back("the resident time of some tasks could not be measured and counts as zero");
}

// Every task its own part of the scratch memory, in turn: a part comes back only after all others were used.
void replay::state::give_out_work()
{
    u64 offset = 0;
    for (u32 i = 0; i < board->tasks(); ++i) {
        calibrated_work w = work[class_of[i]];
        const u64 bytes = w.bytes_of_scratch(blocks[i]);
        if (bytes != 0) {
            if (offset + bytes > scratch_bytes) offset = 0;
            w.scratch = reinterpret_cast<u64>(scratch) + offset;
            offset += (bytes + 255) / 256 * 256;
        }
        static_cast<replay_task*>(board->arguments(i))->work = w;
    }
}

void replay::state::describe(const trace::recorded_trace& recorded)
{
    std::map<u32, u64> block_sizes;
    u64 without_duration = 0, without_bytes = 0, without_grid = 0, without_ranges = 0, assumed_bytes = 0;
    for (const auto& t : recorded.tasks) {
        if (t.kind == trace::task_kind::kernel)
            ++block_sizes[t.block[0] * std::max(t.block[1], 1u) * std::max(t.block[2], 1u)];
        else
            ++without_grid;
        without_duration += !t.duration_known;
        without_ranges += !t.accesses_known;
        if (!t.bytes_known) {
            ++without_bytes;
            assumed_bytes += t.moved_bytes;
        }
    }
    if (!block_sizes.empty()) {
        std::string list;
        for (const auto& [threads, tasks] : block_sizes)
            list += (list.empty() ? "" : ", ") + std::to_string(threads) + " (" + count_of(tasks, "task") + ")";
        notes.push_back("recorded block sizes: " + list + "; every body runs with "
                        + (device->is_cuda()
                               ? std::to_string(board->program().image().cuda->threads) + " threads, a compile-time property"
                               : std::string("the host's block of one thread")));
    }
    if (without_grid != 0)
        notes.push_back(count_of(without_grid, "task") + " without a recorded grid (copies, memsets, operators): one block for "
                        "each 32 KiB, at most 128, is assumed");
    if (without_bytes != 0)
        notes.push_back("bytes of " + count_of(without_bytes, "task") + " are not in the trace: "
                        + (assumed_bytes ? megabytes(assumed_bytes) + " are assumed, the ranges of their operators"
                                         : "none are assumed"));
    if (without_duration != 0)
        notes.push_back("durations of " + count_of(without_duration, "task") + " are not in the trace: 5 us each are assumed");
    if (recorded.dependencies == trace::dependency_source::stream_order)
        notes.push_back("dependencies are those of the recorded streams: what this replay gains, a launch order could gain too");
    else if (without_ranges != 0)
        notes.push_back(count_of(without_ranges, "task") + " without known ranges keep their place in their stream");
}

engines::arrivals arrivals_of(const trace::recorded_trace& recorded, engines::arrival_mode mode)
{
    engines::arrivals out{mode};
    if (mode != engines::arrival_mode::paced) return out;
    if (!recorded.durations_known)
        throw config_error("paced replay needs recorded times: an execution trace alone has none, "
                           "give the Kineto trace of the same run");
    for (const trace::recorded_task& t : recorded.tasks) out.at_us.push_back(t.submit_us - recorded.tasks.front().submit_us);
    // Each engine waits through all of it in each run.
    if (!out.at_us.empty() && out.at_us.back() > paced_us_max)
        throw config_error("paced replay: the tasks arrive over " + std::to_string(static_cast<u64>(out.at_us.back() / 1e6))
                           + " s, and at most " + std::to_string(static_cast<u64>(paced_us_max / 1e6))
                           + " are waited through; record fewer steps, or replay back-to-back");
    return out;
}

replay::replay(engines::device_memory& device, const trace::recorded_trace& recorded, const replay_options& options)
    : state_(std::make_unique<state>())
{
    if (recorded.tasks.empty()) throw config_error("replay: the trace holds no GPU task; record one that does");
    state& s = *state_;
    s.device = &device;
    s.choose_blocks(recorded);
    s.build_board(recorded);
    s.make_classes(recorded);
    s.describe(recorded);
    s.calibrate_classes(options);
    s.measure_resident(options);
    s.give_out_work();
    if (!options.break_kind.empty()) {
        const broken_edge edge = s.board->break_edge(options.break_kind);
        static_cast<replay_task*>(s.board->arguments(edge.held))->hold = device.is_cuda() ? hold_cuda : hold_host;
        s.notes.push_back("BROKEN ON PURPOSE: task " + std::to_string(edge.task) + " no longer waits for task "
                          + std::to_string(edge.predecessor) + " (" + edge.kind + "), which is late because task "
                          + std::to_string(edge.held) + " takes long");
    }
}

replay::~replay() = default;

const engines::program& replay::program() const { return state_->board->program(); }
void replay::reset() { state_->board->reset(); }
verdict replay::verify() { return state_->board->verify(); }
const solo_times& replay::solo() const { return state_->solo; }
const std::vector<std::string>& replay::notes() const { return state_->notes; }

} // namespace slipstream::workloads
