// The bodies of very many blocks as plain kernels, each in the configuration that serves it best.
#include "tools/slipstream/bench/floors/floor_groups.hpp"
#include "tools/slipstream/bench/floors/floor_names.hpp"
#include "tools/slipstream/bench/floors/gpu_timing.cuh"
#include "tools/slipstream/bench/wide_reference.hpp"
#include "tools/slipstream/bench/wide_tasks.hpp"
#include <slipstream/cuda_block.cuh>

namespace slipstream::bench {
namespace {

extern __shared__ __align__(16) unsigned char launched_shared[];

/// Blocks of the task in turn, should the grid be smaller than it.
template <class Task, u32 Threads, u32 PerSm>
__global__ void __launch_bounds__(Threads, PerSm) launched_body(const __grid_constant__ Task task, u32 blocks)
{
    __shared__ block_failure failure; // these bodies do not fail
    for (u32 b = blockIdx.x; b < blocks; b += gridDim.x) {
        cuda_block<Threads> block(b, blocks, launched_shared, &failure);
        task(block);
        __syncthreads(); // scratch memory is used again
    }
}

template <class Task> struct launch_shape {
    void (*kernel)(Task, u32);
    u32 threads;
    bool resident; ///< as many thread blocks as fit at a time, each of which runs many blocks; else one each
};

template <class Task, u32 Threads, u32... PerSm> void add_shapes(std::vector<launch_shape<Task>>& to)
{
    for (const bool resident : {false, true}) (to.push_back({launched_body<Task, Threads, PerSm>, Threads, resident}), ...);
}

/// What is tried. Of a large task the two grids are alternatives of their own: one thread block a block, as it is asked for, or a
/// resident grid, for which the kernel was written with a loop.
template <class Task> std::vector<launch_shape<Task>> shapes_of(bool resident)
{
    std::vector<launch_shape<Task>> out;
    if constexpr (is_large(Task::kind)) {
        out.push_back({launched_body<Task, 32, 32>, 32, resident});
        out.push_back({launched_body<Task, 256, 8>, 256, resident});
    } else if constexpr (Task::kind == wide_kind::copy || Task::kind == wide_kind::reduction) {
        add_shapes<Task, 128, 2, 4, 8>(out);
        add_shapes<Task, 256, 1, 2, 4>(out);
        add_shapes<Task, 512, 1, 2>(out);
    } else if constexpr (Task::kind == wide_kind::gemm) { // a tile wants its four warps
        add_shapes<Task, gemm_threads, 1, 2, 3>(out);
    } else { // many registers
        add_shapes<Task, 256, 1, 2>(out);
    }
    return out;
}

/// Device memory of one kind.
template <class Task> class wide_memory {
public:
    explicit wide_memory(const wide_shape& s)
        : shape_(s), source_(reads_source ? static_cast<u64>(share_words) * s.blocks : 1),
          rows_(Task::kind == wide_kind::gemm ? static_cast<u64>(gemm_side) * gemm_tiles * s.depth : 1), columns_(rows_.size()),
          target_(std::max<u64>(1, static_cast<u64>(wide_target_bytes(Task::kind)) * s.blocks)), ledger_(s.blocks)
    {
        if (reads_source) {
            launched_body<source_task, 256, 1><<<s.blocks, 256>>>(source_task{{source_.get(), source_.size()}}, s.blocks);
            check_cuda(cudaDeviceSynchronize(), "source_task");
        }
        if (Task::kind == wide_kind::gemm) {
            rows_.write(factor_values(s));
            columns_.write(factor_values(s));
        }
    }
    Task task(u32 number) const { return Task::over(places(), shape_, number); }
    wide_places places() const { return {source_.get(), rows_.get(), columns_.get(), target_.get(), ledger_.get()}; }

private:
    static constexpr bool reads_source = Task::kind == wide_kind::copy || Task::kind == wide_kind::reduction;
    wide_shape shape_;
    floor_memory<u32> source_;
    floor_memory<u16> rows_, columns_;
    floor_memory<unsigned char> target_;
    floor_memory<u32> ledger_;
};

template <class Task> class launched_task {
public:
    /// Microseconds of `count` launches one behind the other.
    double us(const launch_shape<Task>& how, u32 count)
    {
        const u32 grid = how.resident ? gpu_.sms * fit(how) : shape_.blocks;
        return timer_.us([&] {
            for (u32 i = 0; i < count; ++i) {
                how.kernel<<<grid, how.threads, shared, timer_.stream()>>>(memory_.task(++number_), shape_.blocks);
                reference_.step(number_);
            }
            check_cuda(cudaGetLastError(), "launch of a body");
        });
    }
    /// Thread blocks of it on an SM; 0: it does not run here.
    u32 fit(const launch_shape<Task>& how) const
    {
        int blocks = 0;
        const auto* const function = reinterpret_cast<const void*>(how.kernel);
        check_cuda(cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared)),
                   "cudaFuncSetAttribute");
        check_cuda(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, static_cast<int>(how.threads), shared),
                   "cudaOccupancyMaxActiveBlocksPerMultiprocessor");
        return static_cast<u32>(blocks);
    }
    double waves(const launch_shape<Task>& how) const { return static_cast<double>(shape_.blocks) / (gpu_.sms * fit(how)); }
    bool right()
    {
        return reference_.right(memory_.places(), [](void* to, const void* from, u64 bytes) {
            check_cuda(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost), "cudaMemcpy");
        });
    }

private:
    static constexpr u32 shared = shared_bytes_of<Task>();
    gpu_shape gpu_ = current_gpu();
    wide_shape shape_ = shape_of(Task::kind, true);
    wide_memory<Task> memory_{shape_};
    wide_reference reference_{Task::kind, shape_};
    gpu_timer timer_;
    u32 number_ = 0;
};

template <class Task> floor_result measure_launched(bool resident, u32 repeats)
{
    constexpr u32 count = 4;
    launched_task<Task> body;
    const auto shapes = shapes_of<Task>(resident);
    const launch_shape<Task>* best = nullptr;
    double least = 0;
    for (const auto& shape : shapes) {
        if (body.fit(shape) == 0) continue;
        body.us(shape, 1);
        const double us = body.us(shape, count);
        if (best != nullptr && us >= least) continue;
        best = &shape;
        least = us;
    }
    if (best == nullptr) throw device_error("no configuration of this body fits on this GPU");
    std::vector<double> us = floor_slopes([&](u32 n, u32) { return body.us(*best, n); }, count, repeats);
    return {std::move(us),
            body.right(),
            {{"threads", best->threads},
             {"thread_blocks_an_sm", body.fit(*best)},
             {"resident_grid", best->resident ? 1 : 0},
             {"waves", body.waves(*best)}}};
}

} // namespace

void add_wide_alternatives(std::vector<floor_entry>& to)
{
    const auto alternative = [&](std::string name, wide_kind kind, bool resident) {
        to.push_back({std::move(name), "us", floor_kind::alternative, [=](u32 repeats) {
                          return with_task_of(kind, [=](auto* type) {
                              return measure_launched<std::remove_pointer_t<decltype(type)>>(resident, repeats);
                          });
                      }});
    };
    for (const wide_kind kind :
         {wide_kind::copy, wide_kind::reduction, wide_kind::gemm, wide_kind::fp64, wide_kind::even, wide_kind::skewed})
        alternative(floor_names::launched(kind), kind, false);
    for (const wide_kind kind : {wide_kind::even, wide_kind::skewed})
        alternative(floor_names::launched_resident(kind), kind, true);
}

} // namespace slipstream::bench
