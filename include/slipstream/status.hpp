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
    cancelled, ///< reserved for poisoning, which is not built yet: today the readers of a failed task still run
};

struct task_status {
    task_state state = task_state::pending;
    u32 code = 0; ///< failed: the body's code
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

/// The device cannot be used, or was lost (a kernel faulted, the driver is too old, no GPU).
class device_error : public error {
public:
    using error::error;
};

} // namespace slipstream
