// A backend around another one, which it passes everything on to: for tests that look at some of it, or change it.
#pragma once
#include "host/backend.hpp"
#include <memory>
#include <utility>

namespace slipstream::tests {

class wrapped_backend : public host::backend {
public:
    explicit wrapped_backend(std::unique_ptr<host::backend> inner) : inner_(std::move(inner)) {}
    std::string name() const override { return inner_->name(); }
    bool is_cuda() const override { return inner_->is_cuda(); }
    u32 workers() const override { return inner_->workers(); }
    u32 control_blocks() const override { return inner_->control_blocks(); }
    void* take_pinned(std::size_t bytes) override { return inner_->take_pinned(bytes); }
    void* take_device(std::size_t bytes) override { return inner_->take_device(bytes); }
    void write(void* to, const void* from, std::size_t bytes) override { inner_->write(to, from, bytes); }
    void read(void* to, const void* from, std::size_t bytes) override { inner_->read(to, from, bytes); }
    std::size_t near_bytes_max() const override { return inner_->near_bytes_max(); }
    void prepare(std::size_t near_bytes) override { inner_->prepare(near_bytes); }
    void launch(const host::host_arguments& arguments) override { inner_->launch(arguments); }
    host::stream_port* streams() override { return inner_->streams(); }
    bool running() override { return inner_->running(); }

private:
    std::unique_ptr<host::backend> inner_;
};

} // namespace slipstream::tests
