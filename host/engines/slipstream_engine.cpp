// slipstream: the program's tasks go to a runtime over the program's image; hazards are found on the device.
#include "host/engines/engine_factories.hpp"
#include <chrono>
#include <slipstream/runtime.hpp>

namespace slipstream::engines {
namespace {

class slipstream_engine final : public engine {
public:
    slipstream_engine(const config& configuration, const kernel_image& image) : config_(configuration), image_(image)
    {
        if (config_.batch) throw config_error("the slipstream engine does not run in batch mode");
    }

    std::string name() const override { return "slipstream"; }
    runtime_base* runtime() override { return runtime_.get(); }

    void prepare(const program& p) override
    {
        runtime_.reset(); // before the new one takes its memory
        config c = config_;
        c.handles_max = std::max(c.handles_max, static_cast<u32>(p.registrations().size()));
        runtime_ = std::make_unique<runtime_base>(c, image_);
        runtime_->pause();
        translate(p);
        handles_.resize(p.tasks().size());
        u32 after_max = 0;
        for (const program_task& t : p.tasks()) after_max = std::max(after_max, t.after_count);
        after_.resize(after_max);
    }

    run_result run(const program& p) override
    {
        runtime_->resume();
        // A marker brings the kernel onto the device: launching it is start-up, not part of the program.
        submit_options first;
        first.order = ordering::no_access;
        (void)runtime_->wait(runtime_->submit_bytes(image_.types - 1, nullptr, first));

        const auto start = std::chrono::steady_clock::now();
        const std::span<const program_task> tasks = p.tasks();
        for (std::size_t i = 0; i < tasks.size(); ++i) {
            const program_task& t = tasks[i];
            const auto after = p.after(t);
            for (std::size_t k = 0; k < after.size(); ++k) after_[k] = handles_[after[k]];
            submit_options options;
            options.blocks = t.blocks;
            options.after = std::span<const task_handle>(after_.data(), after.size());
            options.accesses = accesses_.empty() ? p.accesses(t)
                                                 : std::span<const declared_access>(accesses_.data() + t.access_first, t.access_count);
            options.order = t.order;
            handles_[i] = runtime_->submit_bytes(
                t.type, words_.empty() ? p.arguments(t) : reinterpret_cast<const char*>(words_.data()) + t.bytes_first, options);
        }
        const auto submitted = std::chrono::steady_clock::now();
        runtime_->wait_all();
        const auto end = std::chrono::steady_clock::now();

        runtime_->pause(); // nobody else's launch waits for our kernel between two runs
        for (std::size_t i = 0; i < handles_.size(); ++i)
            if (const task_status status = runtime_->query(handles_[i]); !status.ok())
                throw error("task " + std::to_string(i) + (tasks[i].name.empty() ? "" : " (" + std::string(tasks[i].name) + ")")
                            + (status.state == task_state::cancelled ? " was cancelled" : " failed") + " with code "
                            + std::to_string(status.code));
        using microseconds = std::chrono::duration<double, std::micro>;
        return {microseconds(end - start).count(), microseconds(submitted - start).count()};
    }

private:
    /// Registers the program's handles and puts the runtime's numbers in place of the program's, in copies of structs and lists.
    void translate(const program& p)
    {
        words_.clear();
        accesses_.clear();
        if (p.registrations().empty()) return;
        std::vector<u32> index;
        bool same = true;
        for (const data_handle& h : p.registrations()) {
            const auto* const data = reinterpret_cast<const void*>(h.address);
            index.push_back((h.rows ? runtime_->register_tile(data, h.bytes, h.rows, h.pitch) : runtime_->register_range(data, h.bytes))
                                .index);
            same = same && index.back() == h.index;
        }
        if (same) return;
        words_.assign(p.argument_words().begin(), p.argument_words().end());
        for (const program_task& t : p.tasks()) {
            const abi::task_type& layout = image_.table[t.type];
            auto* const words = reinterpret_cast<u32*>(reinterpret_cast<char*>(words_.data()) + t.bytes_first);
            for (u32 m = 0; m < layout.members; ++m) {
                u32* const tail = words + layout.member_offset[m] + 2;
                u64 value = tail[0] | static_cast<u64>(tail[1]) << 32;
                const u64 plus_one = value >> detail::member_handle_shift;
                if (plus_one == 0) continue;
                value = (value & detail::member_bytes_max) | (u64{index.at(plus_one - 1)} + 1) << detail::member_handle_shift;
                tail[0] = static_cast<u32>(value);
                tail[1] = static_cast<u32>(value >> 32);
            }
            for (const declared_access& a : p.accesses(t)) {
                const std::size_t at = static_cast<std::size_t>(t.access_first) + static_cast<std::size_t>(&a - p.accesses(t).data());
                if (accesses_.size() <= at) accesses_.resize(at + 1);
                accesses_[at] = a;
                if (a.handle_plus_one) accesses_[at].handle_plus_one = index.at(a.handle_plus_one - 1) + 1;
            }
        }
    }

    config config_;
    kernel_image image_;
    std::unique_ptr<runtime_base> runtime_;
    std::vector<task_handle> handles_;
    std::vector<task_handle> after_;
    std::vector<u64> words_;       ///< task structs with the runtime's handles; empty: the program's own serve
    std::vector<declared_access> accesses_; ///< likewise
};

} // namespace

std::unique_ptr<engine> make_slipstream_engine(const config& configuration, const kernel_image& image)
{
    return std::make_unique<slipstream_engine>(configuration, image);
}

} // namespace slipstream::engines
