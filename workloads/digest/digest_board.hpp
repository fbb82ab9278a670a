// A program of digest tasks over one array of cells: memory, reset, sequential oracle, comparison.
#pragma once
#include "workloads/digest/broken_edge.hpp"
#include "workloads/digest/digest_task.hpp"
#include "workloads/workload.hpp"
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace slipstream::workloads {

/// Cells a task uses: a run, or `rows` runs that start `pitch` cells apart.
struct cell_access {
    abi::access_mode mode = abi::access_mode::none;
    u32 first = 0;
    u32 count = 0;
    u32 rows = 1;
    u32 pitch = 0;
    u32 handle_plus_one = 0; ///< what register_cells() answered, plus one; 0: a raw range
};

/// One task. The body uses `declared` and `hidden` cells, engines see `declared` only.
struct digest_step {
    std::span<const cell_access> declared{};
    std::span<const cell_access> hidden{};
    std::span<const u32> after{}; ///< numbers of earlier tasks
    u32 blocks = 1;
    ordering order = ordering::by_access;
    std::string_view name{}; ///< must outlive the board
};

/// A task struct with a digest_share in it, as the image knows it; `bytes` stays valid until the next call.
struct shaped_task {
    u32 type;
    const void* bytes;
};

/// Life: register_cells and add, in any order; finish(); then program(), reset(), verify() any number of times.
class digest_board {
public:
    digest_board(engines::device_memory& device, const kernel_image& image, u32 cells);

    /// Declares cells as a unit of dependency; units must be equal or disjoint. Returns its index.
    u32 register_cells(u32 first, u32 count, u32 rows = 1, u32 pitch = 0);
    /// Appends a task; returns its number.
    u32 add(const digest_step& step);
    /// Lets the body of an earlier task use further cells that nobody declares.
    void use_hidden(u32 task, const cell_access& cells);
    u32 tasks() const { return static_cast<u32>(steps_.size()); }

    /// Takes memory for runs and results, makes the program, computes the oracle. `shape` is called once a task, in order, and
    /// puts the share into a task struct.
    void finish(const std::function<shaped_task(u32 number, const digest_share& share)>& shape);

    /// Removes one declared access of that kind ("RAW", "WAR", "WAW") from a task, so that verify() must fail once the caller
    /// has made block 0 of task `held` late by some milliseconds, through arguments(). After finish(), before engines prepare.
    /// Throws config_error when no edge of the program will do.
    broken_edge break_edge(const std::string& kind);
    /// The task struct of a task, to be changed before engines prepare.
    void* arguments(u32 task) { return program_.arguments(task); }

    const engines::program& program() const { return program_; }
    void reset();
    verdict verify();

private:
    struct step {
        std::vector<cell_access> declared;
        std::vector<cell_access> used;
        std::vector<u32> after;
        u32 blocks;
        ordering order;
        std::string_view name;
        u32 run_first = 0;
        u32 run_count = 0;
    };

    void append_runs(step& s);
    void compute_oracle();

    engines::device_memory* device_;
    engines::program program_;
    u32 cells_;
    u64* memory_; ///< device memory: the cells
    u64* results_ = nullptr;
    std::vector<step> steps_;
    std::vector<digest_run> runs_;
    std::vector<u64> initial_;
    std::vector<u64> cells_expected_;
    std::vector<u64> results_expected_;
};

} // namespace slipstream::workloads
