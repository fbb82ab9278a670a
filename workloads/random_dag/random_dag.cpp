// The generator.
//
// Cells: the first part is one row, cut into `width` lanes of four pieces; the second part is a matrix, a column of tiles for
// each lane; then private cells, a cell for each `after` edge, which only that edge orders. Task i belongs to lane i % width: it
// writes there and reads `fan_in` times from random lanes, so tasks of a layer are mostly independent and layers follow each
// other. Memory is used again at every layer, which gives WAR and WAW.
#include "workloads/random_dag/random_dag.hpp"
#include "workloads/digest/digest_workload.hpp"
#include "workloads/parameters.hpp"
#include <algorithm>

namespace slipstream::workloads {
namespace {

using abi::access_mode;

const parameters& defaults()
{
    static const parameters values{
        {"tasks", "1000"},    {"width", "16"},    {"depth", "0"},     {"fan_in", "2"},      {"cells", "4096"},
        {"handles", "0.5"},   {"partial", "0.3"}, {"tiles", "0.3"},   {"whole", "0.005"},   {"no_access", "0.02"},
        {"after", "0.1"},     {"work_us", "5"},   {"work_spread", "0.5"}, {"blocks", "4"},  {"break", ""},
    };
    return values;
}

struct shape {
    u32 tasks, width, fan_in, cells, blocks;
    double handles, partial, tiles, whole, no_access, after, work_us, work_spread;
    std::string broken;
};

shape read_shape(const parameters& given)
{
    const parameter_reader values("random-dag", defaults(), given);
    shape s{};
    s.width = values.whole("width", 1, 65536);
    const u32 depth = values.whole("depth", 0, 10'000'000);
    s.tasks = values.whole("tasks", 1, 10'000'000);
    if (depth != 0) {
        if (u64{depth} * s.width > 10'000'000) throw config_error("random-dag: width x depth must be at most 10000000 tasks");
        s.tasks = depth * s.width;
    }
    s.fan_in = values.whole("fan_in", 0, 1000);
    s.cells = values.whole("cells", 64, 1u << 28);
    s.blocks = values.whole("blocks", 1, 1u << 20);
    s.handles = values.number("handles", 0, 1);
    s.partial = values.number("partial", 0, 1);
    s.tiles = values.number("tiles", 0, 1);
    s.whole = values.number("whole", 0, 1);
    s.no_access = values.number("no_access", 0, 1);
    s.after = values.number("after", 0, 1);
    s.work_us = values.number("work_us", 0, 1e6);
    s.work_spread = values.number("work_spread", 0, 1);
    s.broken = values.text("break");
    if (s.cells < 64 * u64{s.width})
        throw config_error("random-dag: cells = " + std::to_string(s.cells) + " is too few for width " + std::to_string(s.width)
                           + ": use at least 64 a lane, " + std::to_string(64 * u64{s.width}));
    return s;
}

/// The same numbers everywhere, unlike the distributions of the standard library (splitmix64).
class random_source {
public:
    explicit random_source(u64 seed) : state_(seed) {}
    u64 next()
    {
        state_ += 0x9e3779b97f4a7c15u;
        return digest_mix(state_, 0);
    }
    u32 below(u32 bound) { return static_cast<u32>((next() >> 32) * bound >> 32); }
    u32 between(u32 first, u32 last) { return first + below(last - first + 1); }
    double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }
    bool chance(double p) { return unit() < p; }

private:
    u64 state_;
};

class generator {
public:
    generator(const shape& s, digest_board& board, u64 seed)
        : s_(s), board_(board), random_(digest_mix(seed, 0xda6)), row_cells_(s.cells / 2),
          lane_(row_cells_ / s.width), piece_(lane_ / pieces), pitch_(tile_width * s.width), matrix_(row_cells_),
          matrix_rows_((s.cells - row_cells_) / pitch_), private_(s.cells)
    {
        if (s.handles > 0) {
            handle_of_piece_.resize(u64{pieces} * s.width);
            for (u32 i = 0; i < handle_of_piece_.size(); ++i)
                handle_of_piece_[i] = board.register_cells(piece_first(i), piece_) + 1;
            handle_of_tile_.resize(u64{matrix_rows_ / tile_height} * s.width);
            for (u32 i = 0; i < handle_of_tile_.size(); ++i)
                handle_of_tile_[i] = board.register_cells(tile_first(i), tile_width, tile_height, pitch_) + 1;
        }
    }

    /// Cells that `after` edges need beyond s.cells: at most one a task.
    static u32 private_cells(const shape& s) { return s.after > 0 ? s.tasks : 0; }

    void add_all()
    {
        for (u32 i = 0; i < s_.tasks; ++i) add(i);
    }

    const std::vector<double>& work_us() const { return work_us_; }

private:
    static constexpr u32 pieces = 4;
    static constexpr u32 tile_width = 4;
    static constexpr u32 tile_height = 4;

    u32 piece_first(u32 i) const { return i / pieces * lane_ + i % pieces * piece_; }
    u32 tile_first(u32 i) const { return matrix_ + i / s_.width * tile_height * pitch_ + i % s_.width * tile_width; }

    cell_access range_of(u32 lane, access_mode mode)
    {
        if (random_.chance(s_.partial)) {
            // Anywhere in the lane; may reach into the next one.
            const u32 first = lane * lane_ + random_.below(lane_);
            return {mode, first, std::min(random_.between(1, 2 * piece_), row_cells_ - first)};
        }
        const u32 i = lane * pieces + random_.below(pieces);
        cell_access a{mode, piece_first(i), piece_};
        if (random_.chance(s_.handles)) a.handle_plus_one = handle_of_piece_[i];
        return a;
    }

    cell_access tile_of(u32 lane, access_mode mode)
    {
        if (!random_.chance(s_.partial)) {
            const u32 i = random_.below(matrix_rows_ / tile_height) * s_.width + lane;
            cell_access a{mode, tile_first(i), tile_width, tile_height, pitch_};
            if (random_.chance(s_.handles)) a.handle_plus_one = handle_of_tile_[i];
            return a;
        }
        const u32 end = matrix_ + matrix_rows_ * pitch_;
        const u32 first = matrix_ + random_.below(matrix_rows_) * pitch_ + lane * tile_width + random_.below(tile_width);
        switch (random_.below(4)) {
        case 0: // one run across rows
            return {mode, first, std::min(random_.between(1, pitch_ + tile_width), end - first)};
        // One draw a line: of two arguments of a call a compiler may draw either first.
        case 1: { // every other row: another pitch
            const u32 rows = random_.between(1, 3);
            const u32 count = random_.between(1, tile_width);
            return fitted(mode, first, count, rows, 2 * pitch_, end);
        }
        default: { // a rectangle on no grid; in the last lanes it wraps into the next row
            const u32 rows = random_.between(1, 6);
            const u32 count = random_.between(1, std::min(2 * tile_width, pitch_));
            return fitted(mode, first, count, rows, pitch_, end);
        }
        }
    }

    static cell_access fitted(access_mode mode, u32 first, u32 count, u32 rows, u32 pitch, u32 end)
    {
        while (rows > 1 && first + (rows - 1) * pitch + count > end) --rows;
        return {mode, first, std::min(count, end - first), rows, pitch};
    }

    cell_access access_of(u32 lane, access_mode mode)
    {
        return random_.chance(s_.tiles) ? tile_of(lane, mode) : range_of(lane, mode);
    }

    void add(u32 i)
    {
        const u32 lane = i % s_.width;
        declared_.clear();
        hidden_.clear();
        after_.clear();
        digest_step step;
        step.blocks = random_.between(1, s_.blocks);
        work_us_.push_back(s_.work_us * (1 + s_.work_spread * (2 * random_.unit() - 1)));

        std::vector<cell_access>* list = &declared_;
        if (random_.chance(s_.no_access)) {
            step.order = ordering::no_access;
            list = nullptr;
        } else if (random_.chance(s_.whole)) {
            // Both ways to say it: outright, and by declaring nothing.
            if (random_.chance(0.5)) step.order = ordering::whole_memory;
            list = &hidden_;
        }
        if (list != nullptr) {
            for (u32 k = 0; k < s_.fan_in; ++k) list->push_back(access_of(random_.below(s_.width), access_mode::read));
            list->push_back(access_of(lane, random_.chance(0.25) ? access_mode::read_write : access_mode::write));
            if (random_.chance(0.3)) list->push_back(access_of(lane, access_mode::write));
        }
        if (i > 0 && random_.chance(s_.after)) {
            // The earlier task leaves a value in a private cell, this one picks it up: only `after` orders the two.
            const u32 earlier = i - random_.between(1, std::min(i, 4 * s_.width));
            after_.push_back(earlier);
            board_.use_hidden(earlier, {access_mode::write, private_, 1});
            hidden_.push_back({access_mode::read, private_, 1});
            ++private_;
        }
        step.declared = declared_;
        step.hidden = hidden_;
        step.after = after_;
        board_.add(step);
    }

    shape s_;
    digest_board& board_;
    random_source random_;
    u32 row_cells_;
    u32 lane_;
    u32 piece_;
    u32 pitch_;       ///< of the matrix, in cells
    u32 matrix_;      ///< its first cell
    u32 matrix_rows_;
    u32 private_;     ///< next private cell
    std::vector<u32> handle_of_piece_; ///< plus one
    std::vector<u32> handle_of_tile_;
    std::vector<double> work_us_;
    std::vector<cell_access> declared_, hidden_;
    std::vector<u32> after_;
};

std::unique_ptr<workload> make(engines::device_memory& device, const parameters& values, u64 seed)
{
    const shape s = read_shape(values);
    const auto fill = [&](digest_board& board) {
        generator g(s, board, seed);
        g.add_all();
        return digest_plan{g.work_us(), std::nullopt};
    };
    return std::make_unique<digest_workload>("random-dag", device, s.cells + generator::private_cells(s), fill, s.broken);
}

} // namespace

workload_type random_dag_type()
{
    return {"random-dag",
            "layers of random tasks: ranges, tiles, handles, partial overlaps, whole-memory tasks; verified by digest",
            defaults(), &make};
}

} // namespace slipstream::workloads
