// Memory of a GPU.
#include "host/engines/cuda_launcher.hpp"
#include "host/engines/engine_factories.hpp"

namespace slipstream::engines {
namespace {

class cuda_device_memory final : public device_memory {
public:
    explicit cuda_device_memory(u32 ordinal) : ordinal_(ordinal), streams_(ordinal, 1)
    {
        cudaDeviceProp properties{};
        check_cuda(cudaGetDeviceProperties(&properties, static_cast<int>(ordinal)), "cudaGetDeviceProperties");
        name_ = "cuda:" + std::to_string(ordinal) + " (" + properties.name + ")";
    }

    ~cuda_device_memory() override
    {
        cudaSetDevice(static_cast<int>(ordinal_));
        for (void* p : taken_) cudaFree(p);
    }

    void* take(u64 bytes) override
    {
        use();
        bytes = bytes ? bytes : 1;
        void* p = nullptr;
        check_cuda(cudaMalloc(&p, bytes), ("cudaMalloc of " + std::to_string(bytes) + " B").c_str());
        taken_.push_back(p);
        fill(p, 0, bytes);
        return p;
    }

    void write(void* to, const void* from, u64 bytes) override { copy(to, from, bytes, cudaMemcpyHostToDevice); }
    void read(void* to, const void* from, u64 bytes) override { copy(to, from, bytes, cudaMemcpyDeviceToHost); }

    void fill(void* to, unsigned char value, u64 bytes) override
    {
        use();
        check_cuda(cudaMemsetAsync(to, value, bytes, streams_[0]), "cudaMemset");
        check_cuda(cudaStreamSynchronize(streams_[0]), "cudaMemset");
    }

    std::string name() const override { return name_; }
    bool is_cuda() const override { return true; }
    u32 ordinal() const override { return ordinal_; }

private:
    void use() const { check_cuda(cudaSetDevice(static_cast<int>(ordinal_)), "cudaSetDevice"); }

    void copy(void* to, const void* from, u64 bytes, cudaMemcpyKind kind)
    {
        if (bytes == 0) return;
        use();
        check_cuda(cudaMemcpyAsync(to, from, bytes, kind, streams_[0]), "cudaMemcpy");
        check_cuda(cudaStreamSynchronize(streams_[0]), "cudaMemcpy");
    }

    u32 ordinal_;
    stream_pool streams_; ///< of its own: the default stream would wait for everybody
    std::string name_;
    std::vector<void*> taken_;
};

} // namespace

std::unique_ptr<device_memory> make_cuda_device_memory(u32 ordinal) { return std::make_unique<cuda_device_memory>(ordinal); }

} // namespace slipstream::engines
