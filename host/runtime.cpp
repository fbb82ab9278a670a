// The public runtime: over one runtime_core, or over several of them, which are the engine's parts.
#include "host/partitioned_core.hpp"

namespace slipstream {

runtime_base::runtime_base(const config& configuration, const kernel_image& image)
{
    if (configuration.parts == 1) {
        core_ = std::make_unique<host::runtime_core>(configuration, image);
    } else {
        parts_ = std::make_unique<host::partitioned_core>(configuration, image);
        part_table_ = parts_->table();
    }
}
runtime_base::~runtime_base() = default;

task_handle runtime_base::submit_bytes(u32 type, const void* task, const submit_options& options)
{
    task_handle handle;
    if (parts_) (void)parts_->submit(type, task, options, true, handle);
    else (void)core_->submit(type, task, options, true, handle);
    return handle;
}

submit_status runtime_base::try_submit_bytes(u32 type, const void* task, const submit_options& options, task_handle& handle)
{
    return parts_ ? parts_->submit(type, task, options, false, handle) : core_->submit(type, task, options, false, handle);
}

host::runtime_core& runtime_base::core(u32 part) { return parts_ ? parts_->core(part) : *core_; }
task_status runtime_base::query(task_handle handle) { return parts_ ? parts_->query(handle) : core_->query(handle); }
task_status runtime_base::wait(task_handle handle, deadline until)
{
    return parts_ ? parts_->wait(handle, until) : core_->wait(handle, until);
}
bool runtime_base::wait_all(deadline until) { return parts_ ? parts_->wait_all(until) : core_->wait_all(until); }
task_handle runtime_base::clear_failure() { return parts_ ? parts_->clear_failure() : core_->clear_failure(); }
void runtime_base::after_stream(cuda_stream stream) { parts_ ? parts_->after_stream(stream) : core_->after_stream(stream); }
void runtime_base::signal_stream(cuda_stream stream, task_handle handle)
{
    parts_ ? parts_->signal_stream(stream, handle) : core_->signal_stream(stream, handle);
}
void runtime_base::pause() { parts_ ? parts_->pause() : core_->pause(); }
void runtime_base::resume() { parts_ ? parts_->resume() : core_->resume(); }
void runtime_base::run_batch() { core().run_batch(); } // of parts the first one refuses it, too

data_handle runtime_base::register_range(const void* data, u64 bytes)
{
    return parts_ ? parts_->register_range(data, bytes, 1, 0) : core_->register_range(data, bytes, 1, 0);
}
data_handle runtime_base::register_tile(const void* data, u64 row_bytes, u64 rows, u64 pitch)
{
    return parts_ ? parts_->register_range(data, row_bytes, rows, pitch) : core_->register_range(data, row_bytes, rows, pitch);
}

u32 runtime_base::parts() const { return parts_ ? parts_->parts() : 1; }
u32 runtime_base::part_of(const void* data) const { return parts_ ? parts_->part_of(data) : 0; }

namespace {

void check_only_part(u32 part)
{
    if (part != 0) throw config_error("part " + std::to_string(part) + ": this engine has one, number 0; see config::parts");
}

} // namespace

void runtime_base::place(const void* data, u64 bytes, u32 part)
{
    if (parts_) parts_->place(data, bytes, part);
    else check_only_part(part);
}

void* runtime_base::allocate(u64 bytes, u32 part)
{
    if (parts_) return parts_->allocate(bytes, part);
    check_only_part(part);
    return core_->allocate(bytes);
}
void runtime_base::release(void* memory, u64 bytes)
{
    if (parts_) parts_->release(memory, bytes);
    else core_->release(memory, bytes, {}, core_->holds_ring()); // a thread that never submits takes no ring for this
}
task_handle runtime_base::upload(void* to, const void* from, u64 bytes)
{
    return parts_ ? parts_->upload(to, from, bytes) : core_->upload(to, from, bytes);
}
void runtime_base::download(void* to, const void* from, u64 bytes)
{
    parts_ ? parts_->download(to, from, bytes) : core_->download(to, from, bytes);
}

std::string runtime_base::device_name() const { return (parts_ ? parts_->core(0) : *core_).device().name(); }
bool runtime_base::on_cuda() const { return (parts_ ? parts_->core(0) : *core_).device().is_cuda(); }
u32 runtime_base::workers() const { return parts_ ? parts_->workers() : core_->device().workers(); }
u32 runtime_base::control_blocks() const { return parts_ ? parts_->control_blocks() : core_->device().control_blocks(); }
const config& runtime_base::configuration() const { return parts_ ? parts_->configuration() : core_->configuration(); }
u64 runtime_base::launches() const { return parts_ ? parts_->launches() : core_->launches(); }
std::vector<flight_entry> runtime_base::flight_log() { return parts_ ? parts_->flight_log() : core_->flight_log(); }
flight_samples runtime_base::flight_samples() { return parts_ ? parts_->flight_samples() : core_->flight_samples(); }
bus_traffic runtime_base::bus_traffic() const { return parts_ ? parts_->bus_traffic() : core_->bus_traffic(); }

} // namespace slipstream
