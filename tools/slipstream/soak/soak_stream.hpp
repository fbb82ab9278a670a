// A random stream of tasks, and what memory must hold when it has run: the sequential oracle.
//
// Several submitting threads and one answer: the stream is planned as one sequence. Threads have memory of their own; where tasks
// of two threads meet, in a shared part and at whole-memory tasks, the later one names the earlier one in `after`. Cells that
// every thread adds to are the exception: their sum is the same in whatever order the additions were admitted.
//
// Failing tasks: the oracle keeps poison cell by cell. Their streams use ranges only, and so few at a time that the engine's books
// never overflow: every answer is then exact (device/poison.hpp: parts of rectangles heal late, an overflow poisons everything).
#pragma once
#include "tools/slipstream/soak/soak_case.hpp"
#include "tools/slipstream/soak/soak_random.hpp"
#include "tools/slipstream/soak/soak_task.hpp"
#include <string>
#include <vector>

namespace slipstream::soak {

/// Where what lies among the cells.
inline constexpr u32 banks = 8;            ///< of registered memory; each belongs to one thread
inline constexpr u32 bank_cells = 2048;    ///< a matrix of 16 rows of 64, then ranges of 8
inline constexpr u32 bank_tiles = 32;      ///< registered: 4 x 4, every other one of the matrix
inline constexpr u32 bank_ranges = 128;    ///< registered
inline constexpr u32 bank_handles = bank_tiles + bank_ranges;
inline constexpr u32 bank_pitch = 64;
inline constexpr u32 adders_first = banks * bank_cells;
inline constexpr u32 adders = 16;
inline constexpr u32 trap_first = adders_first + adders; ///< where an access is hidden
inline constexpr u32 trap_cells = 8;
inline constexpr u32 raw_first = trap_first + trap_cells;

soak_op op_of_handle(u32 handle, u32 mode);

enum class task_kind : u8 { move, update, tile, join, add, listed, row, clear };

struct planned_task {
    task_kind kind = task_kind::listed;
    u8 thread = 0;
    u8 spin = 0;
    bool fails = false;
    bool whole = false;     ///< declares nothing, and is ordered against everything
    bool no_access = false;
    bool late = false;      ///< holds its reads and writes back
    u16 ops = 0;            ///< what the body does; the declared ones first
    u16 declared = 0;
    u32 blocks = 1;
    u32 first_op = 0;
    u32 first_chosen = 0;   ///< tasks named because the stream wants it ...
    u16 chosen = 0;
    u32 first_after = 0;    ///< ... and, those included, all that it names
    u16 afters = 0;
    u32 result = 0;         ///< first result word
    u32 at_ring = 0;        ///< how many tasks its thread submits before it
};

enum class outcome : u8 { good, failed, cancelled };

class soak_stream {
public:
    explicit soak_stream(const soak_case& c);

    const soak_case& origin() const { return case_; }
    const std::vector<planned_task>& tasks() const { return tasks_; }
    const std::vector<soak_op>& ops() const { return ops_; }
    u32 handle_plus_one(u32 op) const { return handles_[op]; }
    u32 after(u32 i) const { return afters_[i]; }
    const std::vector<u32>& tasks_of(u32 thread) const { return of_thread_[thread]; }
    outcome expected(u32 task) const { return outcomes_[task]; }
    u64 salt() const { return salt_; }
    u32 cells() const { return static_cast<u32>(memory_.size()); }
    u32 results() const { return static_cast<u32>(results_.size()); }
    u32 kept() const { return kept_; } ///< tasks that are submitted
    bool fails() const { return style_.fail != 0; }
    /// False: cut as it is, its failures may overflow the engine's books, and the oracle does not know the answer.
    bool usable() const { return usable_; }

    /// Empty when memory is as expected, else what is wrong first.
    std::string compare(const std::vector<u64>& cells, const std::vector<u64>& results) const;
    std::string describe(u32 task) const;

private:
    struct access {
        soak_op op;
        u16 handle_plus_one;
    };
    struct shared_cell {
        std::vector<u32> readers;
        u32 writer = none;
    };
    static constexpr u32 none = ~0u;

    void draw(u32 t);
    void draw_row(u32 t);
    void plant(u32 t);
    access draw_range(u32 thread, u32 mode);
    access draw_shared(u32 mode);
    access draw_tile(u32 thread, u32 mode);
    access draw_handle(u32 thread, u32 mode, bool tile);
    void put(planned_task& p, const access& a);
    void choose_after(planned_task& p, u32 t, u32 count);
    bool may_split(const planned_task& p) const;
    bool touches_shared(const soak_op& op) const { return op.first >= raw_first && op.first < raw_first + shared_; }

    void begin_run();
    void order(u32 t);
    void note(u32 t);
    bool is_cancelled(const planned_task& p) const;
    void run(u32 t);
    void execute(const planned_task& p);

    soak_case case_;
    stream_style style_;
    soak_random random_;
    u64 salt_;
    struct row_in_hand {
        u32 left = 0;   ///< tasks to come
        u32 blocks = 0; ///< of each
        u32 thread = 0;
        bool wrote = false;
        access last{};  ///< what its last task wrote, if it did
    } row_;
    bool row_failed_ = false;
    u32 raw_, shared_, own_; ///< cells of the raw area: all, shared by the threads, of each thread
    std::vector<planned_task> tasks_;
    std::vector<soak_op> ops_;
    std::vector<u16> handles_; ///< of an op: handle + 1, or 0
    std::vector<u32> chosen_, afters_;
    std::vector<std::vector<u32>> of_thread_;
    u32 results_next_ = 0;
    u32 kept_ = 0;
    bool usable_ = true;
    bool cut_ = false; ///< the run in hand leaves tasks out

    // The sequential run.
    std::vector<u64> memory_, results_;
    std::vector<outcome> outcomes_;
    std::vector<u8> poison_;
    u32 poison_spent_ = 0; ///< cells ever poisoned since the last clear
    u32 runs_spent_ = 0;
    u32 cleared_ = 0;      ///< tasks before it are forgiven
    std::vector<shared_cell> shared_cells_;
    std::vector<u32> last_of_, whole_seen_;
    u32 last_whole_ = none;
};

} // namespace slipstream::soak
