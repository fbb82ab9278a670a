// The copy on a GPU. Its thread blocks want all of an SM's shared memory, so that none of them shares an SM with the engine or with
// another one; each asks %smid where it is, and works only on an SM of the list.
#include "tools/slipstream/bench/bystander.hpp"
#include "tools/slipstream/bench/floors/gpu_timing.cuh"

namespace slipstream::bench {
namespace {

constexpr u32 sms_most = 1024; // ids of SMs are below it on every GPU
constexpr u32 copy_threads = 1024;
constexpr u32 in_flight = 8;                          // loads of a thread
constexpr u32 piece_quads = in_flight * copy_threads; // 128 KB
constexpr u32 pieces = 8192;                          // 1 GB: twenty times the L2 ...
constexpr u32 laps = 8;                               // ... so often in a run: milliseconds

struct copy_state {
    u32 wanted[sms_most];  ///< 1: of the list
    u32 claimed[sms_most]; ///< a thread block of this run is, or was, there
    u32 worked[sms_most];  ///< pieces copied there
    u32 arrived;           ///< SMs of the list that have their thread block
    u32 next;              ///< piece, counting on from lap to lap
};

__device__ __forceinline__ u32 this_sm()
{
    u32 sm;
    asm("mov.u32 %0, %%smid;" : "=r"(sm));
    return sm;
}

/// Keeps a thread block's place until enough have arrived, so that those behind it in the grid go elsewhere; bounded by a time that
/// is nothing beside a run.
__device__ void hold_place(copy_state& state, u32 enough)
{
    constexpr long long cycles_most = 100'000;
    const long long start = clock64();
    while (clock64() - start < cycles_most && atomicAdd(&state.arrived, 0u) < enough) {}
}

__global__ void __launch_bounds__(copy_threads) look_for_place(copy_state* state)
{
    if (threadIdx.x != 0) return;
    state->claimed[this_sm()] = 1;
    hold_place(*state, ~0u); // nobody arrives: for as long as it takes
}

/// to = from + number, `laps` times, from the piece `first` on.
__global__ void __launch_bounds__(copy_threads)
    copy_on_listed(const quad* from, quad* to, u32 number, u32* copied, copy_state* state, u32 listed, u32 first)
{
    __shared__ bool works;
    __shared__ u32 drawn;
    const u32 sm = this_sm();
    if (threadIdx.x == 0) {
        works = state->wanted[sm] != 0 && atomicExch(&state->claimed[sm], 1u) == 0;
        if (works)
            atomicAdd(&state->arrived, 1u);
        else if (state->wanted[sm] == 0)
            hold_place(*state, listed);
    }
    __syncthreads();
    if (!works) return;
    for (;;) {
        if (threadIdx.x == 0) {
            drawn = first + atomicAdd(&state->next, 1u);
            if (drawn < laps * pieces) {
                atomicAdd(&copied[drawn % pieces], 1u);
                ++state->worked[sm];
            }
        }
        __syncthreads();
        if (drawn >= laps * pieces) return;
        const u64 at = static_cast<u64>(drawn % pieces) * piece_quads + threadIdx.x;
        __syncthreads(); // everybody has read `drawn`
        quad held[in_flight];
        SLIPSTREAM_UNROLL
        for (u32 k = 0; k < in_flight; ++k) held[k] = from[at + k * copy_threads];
        SLIPSTREAM_UNROLL
        for (u32 k = 0; k < in_flight; ++k) {
            for (u32& word : held[k].w) word += number;
            to[at + k * copy_threads] = held[k];
        }
    }
}

u32 content(u64 word)
{
    return static_cast<u32>(word) * 2654435761u;
}

class cuda_bystander final : public bystander {
public:
    explicit cuda_bystander(bool lose_a_piece)
        : first_(lose_a_piece ? 1 : 0), from_(quads), to_(quads), copied_(pieces), state_(1), seen_(1, true)
    {
        int device = 0, bytes = 0;
        check_cuda(cudaGetDevice(&device), "cudaGetDevice");
        check_cuda(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device), "cudaDeviceGetAttribute");
        shared_ = static_cast<u32>(bytes) - 64; // the kernel's own words
        for (const void* kernel : {reinterpret_cast<const void*>(look_for_place), reinterpret_cast<const void*>(copy_on_listed)})
            check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared_)),
                       "cudaFuncSetAttribute");
        std::vector<quad> values(quads);
        for (u64 i = 0; i < quads; ++i)
            for (u32 k = 0; k < 4; ++k) values[i].w[k] = content(4 * i + k);
        from_.write(values);
        (void)run(free_sms()); // loads both kernels: beside a resident one CUDA might wait for its end
    }

    u32 sms() const override { return gpu_.sms; }
    u64 bytes() const override { return 2 * sizeof(quad) * quads * laps; }

    std::vector<u32> free_sms() override
    {
        state_.clear(timer_.stream());
        look_for_place<<<gpu_.sms, copy_threads, shared_, timer_.stream()>>>(state_.get());
        look();
        std::vector<u32> out;
        for (u32 sm = 0; sm < sms_most; ++sm)
            if (seen().claimed[sm] != 0) out.push_back(sm);
        return out;
    }

    double run(const std::vector<u32>& sms) override
    {
        copy_state& s = seen();
        s = {};
        for (const u32 sm : sms) s.wanted[sm] = 1;
        check_cuda(cudaMemcpyAsync(state_.get(), &s, sizeof s, cudaMemcpyHostToDevice, timer_.stream()), "cudaMemcpy");
        ++runs_;
        const double us = timer_.us([&] {
            copy_on_listed<<<gpu_.sms, copy_threads, shared_, timer_.stream()>>>(
                from_.get(), to_.get(), runs_, copied_.get(), state_.get(), static_cast<u32>(sms.size()), first_);
        });
        look();
        for (u32 sm = 0; sm < sms_most; ++sm) good_ &= (s.worked[sm] != 0) == (s.wanted[sm] != 0);
        return us;
    }

    bool right() override
    {
        const std::vector<u32> copied = copied_.read();
        const std::vector<quad> values = to_.read();
        bool good = good_ && std::all_of(copied.begin(), copied.end(), [&](u32 n) { return n == laps * runs_; });
        for (u64 i = 0; i < quads; ++i)
            for (u32 k = 0; k < 4; ++k) good &= values[i].w[k] == content(4 * i + k) + runs_;
        return good;
    }

private:
    static constexpr u64 quads = static_cast<u64>(pieces) * piece_quads;

    copy_state& seen() const { return *seen_.get(); }
    void look()
    {
        check_cuda(cudaGetLastError(), "launch of the copy");
        check_cuda(cudaMemcpyAsync(seen_.get(), state_.get(), sizeof(copy_state), cudaMemcpyDeviceToHost, timer_.stream()),
                   "cudaMemcpy");
        check_cuda(cudaStreamSynchronize(timer_.stream()), "the copy");
    }

    gpu_shape gpu_ = current_gpu();
    u32 first_;
    u32 shared_ = 0;
    floor_memory<quad> from_, to_;
    floor_memory<u32> copied_;
    floor_memory<copy_state> state_, seen_;
    gpu_timer timer_;
    bool good_ = true;
    u32 runs_ = 0;
};

} // namespace

std::unique_ptr<bystander> make_cuda_bystander(bool lose_a_piece)
{
    return std::make_unique<cuda_bystander>(lose_a_piece);
}

} // namespace slipstream::bench
