// Somebody else's memory-bound kernel beside the engine: a copy that runs on chosen SMs and nowhere else.
#pragma once
#include <memory>
#include <slipstream/abi/portable.hpp>
#include <vector>

namespace slipstream::bench {

class bystander {
public:
    virtual ~bystander() = default;

    virtual u32 sms() const = 0;   ///< of the device; 0: it has none
    virtual u64 bytes() const = 0; ///< that a run reads and writes
    /// SMs on which a thread block finds place now that wants all of an SM's shared memory.
    virtual std::vector<u32> free_sms() = 0;
    /// Copies everything once, one such thread block on each of these SMs. Returns microseconds.
    virtual double run(const std::vector<u32>& sms) = 0;
    /// Every run so far copied all, on each of its SMs and on no other. Synchronises: not while a runtime lives.
    virtual bool right() = 0;
};

/// On the host a copy by the calling thread. `lose_a_piece`, for tests: one is left out of every run.
std::unique_ptr<bystander> make_host_bystander(bool lose_a_piece);
/// On the current GPU; make it before a runtime takes the GPU. Throws device_error in a build without CUDA.
std::unique_ptr<bystander> make_cuda_bystander(bool lose_a_piece);

} // namespace slipstream::bench
