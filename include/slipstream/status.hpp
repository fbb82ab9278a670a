// What the runtime answers and throws.
#pragma once
#include <slipstream/abi/portable.hpp>
#include <stdexcept>
#include <string>

namespace slipstream {

/// Names a submitted task. Plain value, 16 bytes; valid as long as its runtime, from any thread.
struct task_handle {
    u32 ring = ~0u;
    u64 position = 0;
    friend bool operator==(const task_handle&, const task_handle&) = default;
};

/// What has become of a task.
enum class task_state : u32 {
    pending,   ///< submitted, not yet retired (also: the deadline passed)
    complete,  ///< its writes are visible
    failed,    ///< its body called block.fail(code)
    cancelled, ///< its body did not run: it reads what a failed or cancelled task wrote, or names one by `after`
};

/// A failed task poisons what it writes. Tasks that read poison, or name a failed or cancelled task by `after`, are cancelled
/// in their turn and poison what they write. Orders without data (a write after a read or a write) pass nothing on; a task that
/// only writes a range and succeeds heals it. What a failed task wrote, and what a cancelled one did not, is unspecified.
/// What became of these tasks is kept for as long as the runtime lives: some 100 bytes each.
struct task_status {
    task_state state = task_state::pending;
    u32 code = 0;      ///< failed: its body's code (of several blocks, any one's); cancelled: that of `cause`
    task_handle cause; ///< failed: the task itself; cancelled: the failed task that it goes back to (the oldest of several)
    bool ok() const { return state == task_state::complete; }
};

enum class [[nodiscard]] submit_status : u32 {
    submitted,
    full, ///< try_submit only: the ring, or the span of unfinished submissions, has no room now
};

/// Every error the library throws: what happened and what to do about it.
class error : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// A configuration or argument that cannot work.
class config_error : public error {
public:
    using error::error;
};

/// A value was asked for that a failed task should have produced.
class task_error : public error {
public:
    task_error(const std::string& text, const task_status& status) : error(text), status_(status) {}
    const task_status& status() const { return status_; }

private:
    task_status status_;
};

/// The device cannot be used, or was lost (a kernel faulted, the driver is too old, no GPU).
class device_error : public error {
public:
    using error::error;
};

} // namespace slipstream
