// The host device: control block and workers are threads. Real bodies, real results, not GPU times.
#include "host/backend.hpp"
#include "device/control.hpp"
#include "device/worker.hpp"
#include "host/start_threads.hpp"
#include <cassert>
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>
#include <optional>
#include <thread>
#include <vector>

namespace slipstream::host {
namespace {

using P = device::host_platform;

class host_backend final : public backend {
public:
    host_backend(const config& configuration, const kernel_image& image) : image_(image)
    {
        workers_ = configuration.host_workers ? configuration.host_workers : host_workers_usual();
        if (workers_ > 32 * P::worker_groups)
            throw config_error("host_workers = " + std::to_string(workers_) + ": at most " + std::to_string(32 * P::worker_groups));
        for (u32 t = 0; t < image.types; ++t) shared_bytes_ = std::max(shared_bytes_, image.shared_bytes[t]);
    }

    ~host_backend() override
    {
        join();
        for (auto& [pointer, bytes] : blocks_) ::operator delete(pointer, std::align_val_t{256});
    }

    std::string name() const override { return "host"; }
    bool is_cuda() const override { return false; }
    u32 workers() const override { return workers_; }
    u32 control_blocks() const override { return 1; }

    void* take_pinned(std::size_t bytes) override { return take(bytes); }
    void* take_device(std::size_t bytes) override { return take(bytes); }
    // memcpy(null, null, 0) is undefined
    void write(void* to, const void* from, std::size_t bytes) override { if (bytes) std::memcpy(to, from, bytes); }
    void read(void* to, const void* from, std::size_t bytes) override { if (bytes) std::memcpy(to, from, bytes); }
    std::size_t near_bytes_max() const override { return ~std::size_t{0}; }
    void prepare(std::size_t) override {}

    void launch(const host_arguments& arguments) override
    {
        join();
        arguments_ = arguments;
        state_.emplace(arguments.memory.n, arguments.offsets, arguments.near_saved, arguments.far);
        device::reset_phases<P>(*state_);
        // Before the threads, which begin when all of them are there: where one is missing none has begun, and threads_ is empty.
        resident_.store(workers_ + 1, std::memory_order_relaxed);
        threads_ = start_threads("host_workers = " + std::to_string(workers_), workers_ + 1,
                                 "lower config::host_workers, or raise this process's limits of threads and of address space",
                                 [this](u32 i) { i == 0 ? control() : work(i - 1); });
    }

    stream_port* streams() override { return nullptr; }

    bool running() override
    {
        if (threads_.empty()) return false;
        if (resident_.load(std::memory_order_acquire) != 0) return true;
        join();
        return false;
    }

    void abandon() override
    {
        for (auto& t : threads_) t.detach();
    }

private:
    void* take(std::size_t bytes)
    {
        bytes = std::max<std::size_t>(bytes, 16);
        void* const pointer = ::operator new(bytes, std::align_val_t{256}, std::nothrow);
        if (pointer == nullptr)
            throw device_error(std::to_string(bytes >> 20)
                               + " MiB of this machine's memory found no room; "
                                 "lower config::memory_bytes, staging_bytes, ring_slots or flight_log");
        std::memset(pointer, 0, bytes);
        blocks_.emplace_back(pointer, bytes);
        return pointer;
    }

    void join()
    {
        for (auto& t : threads_) t.join();
        threads_.clear();
    }

    /// The five roles take turns on one thread.
    void control()
    {
        P::team team;
        device::ingest_role<P> ingest(arguments_.memory, *state_);
        P::crew crew;
        device::admission_role<P> admission(arguments_.memory, *state_);
        device::linker_role<P> linker(arguments_.memory, *state_);
        device::scheduler_role<P> scheduler(arguments_.memory, *state_);
        device::notifier_role<P> notifier(arguments_.memory, *state_, arguments_.residency_ns);
        using device::round_result;
        round_result i = round_result::idle, a = round_result::idle, l = round_result::idle,
                     s = round_result::idle, n = round_result::idle;
        const auto ended = [](auto... results) { return ((results == round_result::finished) && ...); };
        // A role may outlive those behind it: admission does not end within a task.
        for (u32 attempt = 0; !ended(i, a, l, s, n);) {
            if (!ended(i)) i = ingest.round(team);
            if (!ended(a)) a = admission.round(crew);
            if (!ended(l)) l = linker.round(team);
            if (!ended(s)) s = scheduler.round(team);
            // Until its queue is empty: slots come round sooner.
            bool notified = false;
            while (!ended(n) && (n = notifier.round(team)) == round_result::busy) notified = true;
            const bool busy = notified || i == round_result::busy || a == round_result::busy || l == round_result::busy
                || s == round_result::busy;
            attempt = busy ? 0 : attempt + 1;
            if (attempt) P::pause(attempt);
        }
        resident_.fetch_sub(1, std::memory_order_release);
    }

    void work(u32 w)
    {
        device::inbox<P> box;
        device::worker_port<P> port(arguments_.memory, box, w, w);
        P::team team;
        std::vector<std::max_align_t> shared(shared_bytes_ / sizeof(std::max_align_t) + 1);
        device::mail letter{};
        P::cell<u32> taken[abi::task_words_max]; // from the ring (watch.hpp)
        bool stopping = false; // the last answer saw a park, or the end
        for (bool at_hand = false;;) {
            bool watched = false;
            letter = at_hand ? port.after(letter)
                             : port.wait(team, [](u32, u32) {}, [&](const device::mail&) { return taken; },
                                         [](const device::mail&) {}, [&](const device::mail&) { watched = true; });
            assert(!at_hand || letter.only_follows());
            if (letter.leaves()) {
                port.leave(letter);
                break;
            }
            auto& record = port.record(letter);
            const u32 type = letter.type();
            const u32 blocks = watched ? 1 : P::get(record.blocks);
            u32 failure = 0;
            device::flight_times times{};
            if (port.logs() && letter.waits() != 0) times.wait_ns = P::clock_ns();
            const device::verdict decision = letter.staged() && !at_hand ? port.await(team, letter) : device::verdict::run;
            if (decision == device::verdict::leave) { // parked, or aborted
                port.save();
                break;
            }
            const auto run = [&](u32 first, u32 count) {
                port.record_flight(letter, first);
                if (port.logs()) times.start_ns = P::clock_ns();
                for (u32 b = first; b < first + count; ++b) {
                    host_block block(b, blocks, shared.data(), shared_bytes_);
                    image_.host_bodies[type](watched ? taken : record.words, block);
                    if (failure == 0) failure = block.failure();
                }
                port.log_flight(letter, first, count, times, port.runs());
            };
            if (decision == device::verdict::skip) {
                port.skip();
            } else if (!letter.tickets()) {
                run(letter.block(), 1);
            } else {
                device::ticket_drawer<P> tickets(port, record, blocks, 1);
                for (device::ticket_run drawn = tickets.draw(); drawn.count != 0;) {
                    const device::ticket_request next = tickets.ask_ahead();
                    const u64 start = P::clock_ns();
                    run(drawn.first, drawn.count);
                    tickets.took(P::clock_ns() - start);
                    drawn = tickets.next(next);
                }
            }
            if (failure != 0) port.fail(record, failure);
            at_hand = port.plan().goes_on(letter.tag) && !stopping;
            if (at_hand && port.plan().answers_later(letter.tag)) continue;
            if (letter.bypassed() && failure == 0) port.answer_bypassed(letter);
            else if (port.is_alone(letter)) port.answer_alone(letter);
            else port.answer(letter);
            stopping = port.told_to_stop();
        }
        resident_.fetch_sub(1, std::memory_order_release);
    }

    kernel_image image_;
    u32 workers_ = 0;
    u32 shared_bytes_ = 0;
    std::vector<std::pair<void*, std::size_t>> blocks_;
    host_arguments arguments_{};
    std::optional<device::control_state<P>> state_;
    std::vector<std::thread> threads_;
    std::atomic<u32> resident_{0};
};

} // namespace

u32 host_workers_usual() { return std::clamp(std::thread::hardware_concurrency(), 2u, 8u); }

std::unique_ptr<backend> make_host_backend(const config& configuration, const kernel_image& image)
{
    return std::make_unique<host_backend>(configuration, image);
}

} // namespace slipstream::host
