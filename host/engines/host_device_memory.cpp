// Memory of the host device.
#include "host/engines/engine_factories.hpp"
#include <cstring>
#include <new>

namespace slipstream::engines {
namespace {

class host_device_memory final : public device_memory {
public:
    ~host_device_memory() override
    {
        for (void* p : taken_) ::operator delete(p, std::align_val_t{256});
    }

    void* take(u64 bytes) override
    {
        bytes = bytes ? bytes : 1;
        void* const p = ::operator new(bytes, std::align_val_t{256});
        taken_.push_back(p);
        std::memset(p, 0, bytes);
        return p;
    }

    void write(void* to, const void* from, u64 bytes) override
    {
        if (bytes) std::memcpy(to, from, bytes);
    }
    void read(void* to, const void* from, u64 bytes) override
    {
        if (bytes) std::memcpy(to, from, bytes);
    }
    void fill(void* to, unsigned char value, u64 bytes) override
    {
        if (bytes) std::memset(to, value, bytes);
    }
    std::string name() const override { return "host"; }
    bool is_cuda() const override { return false; }

private:
    std::vector<void*> taken_;
};

} // namespace

std::unique_ptr<device_memory> make_host_device_memory() { return std::make_unique<host_device_memory>(); }

} // namespace slipstream::engines
