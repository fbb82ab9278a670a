// What the engines over a runtime share; how a task is submitted is each one's own.
#pragma once
#include "host/engines/engine.hpp"
#include "host/engines/memory_placement.hpp"
#include <slipstream/runtime.hpp>

namespace slipstream::engines {

class runtime_engine : public engine {
public:
    runtime_engine(const char* name, const config& configuration, const kernel_image& image);

    std::string name() const override { return name_; }
    runtime_base* runtime() override { return runtime_.get(); }
    std::span<const task_handle> handles() const override { return handles_; }
    void prepare(const program& p) override;
    run_result run(const program& p) override;
    double scheduling_sms() override;

protected:
    /// Submits all tasks in program order and puts their handles into handles_.
    virtual void submit_all(const program& p, pacer& arriving) = 0;
    /// Adds to the result what the engine has to tell of the run.
    virtual void tell(run_result&) {}

    /// The task struct as the runtime wants it: with its own numbers of registered handles.
    const void* arguments(const program& p, const program_task& t) const
    {
        return words_.empty() ? p.arguments(t) : reinterpret_cast<const char*>(words_.data()) + t.bytes_first;
    }
    /// The declared accesses, likewise.
    std::span<const declared_access> accesses(const program& p, const program_task& t) const
    {
        return accesses_.empty() ? p.accesses(t)
                                 : std::span<const declared_access>(accesses_.data() + t.access_first, t.access_count);
    }

    std::unique_ptr<runtime_base> runtime_;
    std::vector<task_handle> handles_; ///< of the tasks of this run, by number

private:
    static constexpr u32 ring_slots_most = 1u << 20; ///< 64 MiB of pinned memory
    u32 slots_of(const program& p, std::span<const placed_memory> placed) const;
    void translate(const program& p);
    void place(const program& p, std::span<const placed_memory> placed);

    std::string name_;
    config config_;
    kernel_image image_;
    u64 crossing_tasks_ = 0; ///< of this program: tasks that touch memory of several parts
    std::vector<u64> words_;                ///< task structs with the runtime's handles; empty: the program's own serve
    std::vector<declared_access> accesses_; ///< likewise
};

} // namespace slipstream::engines
