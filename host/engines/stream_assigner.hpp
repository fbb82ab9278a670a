// Chooses a stream for each task and the events it must wait for: all that the streams engine decides, without CUDA.
//
// A task follows a predecessor that is the last one in its stream, the latest if there are several; then that edge costs
// nothing. Otherwise it takes the stream that was used least recently. Each stream keeps a vector clock: how far it is known
// to be behind every other stream. An edge that the clock covers needs no event, and predecessors are looked at latest first,
// since the latest one usually covers the rest.
//
// The choice depends on the tasks and their edges alone, never on time, so that a second pass repeats the first one exactly.
#pragma once
#include <slipstream/abi/portable.hpp>
#include <span>
#include <vector>

namespace slipstream::engines {

class stream_assigner {
public:
    explicit stream_assigner(u32 streams);

    struct placement {
        u32 stream;
        std::span<const u32> waits; ///< tasks in other streams to wait for by event; valid until the next call
    };

    /// Places the next task: the first call places task 0. `predecessors`: earlier tasks, the latest first.
    placement place(std::span<const u32> predecessors);

    /// Streams that must be waited for at the end so that everything is complete: not those another one waited for.
    std::vector<u32> open_streams() const;

    /// Starts again with task 0, keeping memory.
    void reset();
    /// Takes the memory for this many tasks.
    void reserve(u32 tasks);

private:
    u32 streams_;
    std::vector<u32> clocks_;    ///< per stream, streams_ words: the last place of every stream that this stream is behind
    std::vector<u32> length_;    ///< tasks placed in each stream; a task's place is 1 for the first
    std::vector<u32> last_used_; ///< number of the task that was placed there last, plus one
    struct task_place {
        u32 stream;
        u32 place;
    };
    std::vector<task_place> places_;
    std::vector<u32> task_clocks_; ///< per task, streams_ words: what its stream was behind when it was placed
    std::vector<u32> waits_;
};

} // namespace slipstream::engines
