// One stack that can be left and re-entered: the threads of a model execution are fibers of one OS thread.
#pragma once
#include <cstddef>

namespace slipstream::model {

class fiber {
public:
    using entry = void (*)(void* argument);

    fiber();
    ~fiber();
    fiber(const fiber&) = delete;
    fiber& operator=(const fiber&) = delete;

    /// Prepares the stack so that the first resume() calls run(argument). run may return: the fiber is then finished.
    void start(entry run, void* argument);
    /// Called by the explorer: runs the fiber until it leaves or finishes.
    void resume();
    /// Called on the fiber: back to the explorer.
    void leave();

private:
    static constexpr std::size_t stack_bytes = 256 * 1024;
    static void first();

    void* stack_;
    void* inside_ = nullptr;
    void* outside_ = nullptr;
    entry run_ = nullptr;
    void* argument_ = nullptr;
};

} // namespace slipstream::model
