// An engine runs a program and measures its makespan; see README.md of this folder for how each one does it.
#pragma once
#include "host/engines/arrivals.hpp"
#include "host/engines/program.hpp"
#include <memory>
#include <slipstream/config.hpp>
#include <string>
#include <utility>
#include <vector>

namespace slipstream {
class runtime_base;
}

namespace slipstream::engines {

/// Memory of the device an engine runs on; the program's pointers point into it.
class device_memory {
public:
    virtual ~device_memory() = default;
    virtual void* take(u64 bytes) = 0; ///< zeroed, 256-byte aligned, freed with this object
    virtual void write(void* to, const void* from, u64 bytes) = 0;
    virtual void read(void* to, const void* from, u64 bytes) = 0;
    virtual void fill(void* to, unsigned char value, u64 bytes) = 0;
    virtual std::string name() const = 0; ///< "host" or "cuda:0 (NVIDIA H200)"
    virtual bool is_cuda() const = 0;
    virtual u32 ordinal() const { return 0; } ///< N of cuda:N
};

/// device: "auto" (the first usable GPU, else the host), "cuda" (cuda:0), "cuda:N", "host". Throws device_error or config_error
/// with a remedy. Call it before anything else uses CUDA: it asks the driver for 32 hardware queues, which the stream-based engines
/// need (CUDA_DEVICE_MAX_CONNECTIONS).
std::unique_ptr<device_memory> open_device(const std::string& device);

struct run_result {
    double makespan_us = 0; ///< host clock, from the first submit or launch to the host seeing the last completion
    double submit_us = 0;   ///< host time of all submissions, completion waits excluded; of preloaded tasks, before the makespan
    double cpu_us = 0;      ///< CPU time of all threads of the process within the makespan
    double submitter_cpu_us = 0; ///< of it, the thread that called run()
    /// What an engine tells of its own phases: a name that ends in _us, and the time. In the makespan or not: README.md says.
    std::vector<std::pair<const char*, double>> phases{};
    /// How often something happened in this run, by name.
    std::vector<std::pair<const char*, u64>> counts{};
    u64 begin_ns = 0; ///< when the makespan began, in std::chrono::steady_clock; engines over a runtime say it
};

/// One way to run programs on one device. An engine may be run many times; preparation (graphs, runtimes) happens in prepare.
class engine {
public:
    virtual ~engine() = default;
    virtual std::string name() const = 0;
    /// Whether this engine can run programs whose tasks arrive like that; README.md says why not.
    virtual bool takes(arrival_mode mode) const { return mode == arrival_mode::back_to_back; }
    /// How the tasks of the next program arrive; before prepare(). Throws config_error when the engine cannot.
    void set_arrivals(arrivals when);
    /// Called once for a program before it is run; not timed.
    virtual void prepare(const program& p) = 0;
    /// Runs all tasks and returns when all are complete. Throws on a lost device.
    virtual run_result run(const program& p) = 0;
    /// The runtime behind the engine, for its flight log and launch count; null for engines without one, and before prepare().
    virtual runtime_base* runtime() { return nullptr; }
    /// SMs that schedule instead of running tasks; after prepare(). 0 where scheduling is left to the host and the hardware.
    virtual double scheduling_sms() { return 0; }
    /// What the tasks of the last run were called there, by their number; likewise.
    virtual std::span<const task_handle> handles() const { return {}; }

protected:
    const arrivals& when() const { return when_; }

private:
    arrivals when_;
};

/// Engines of a device, in the order of reports; README.md lists them.
std::vector<std::string> engine_names(bool cuda);

/// Does the engine of that name have a runtime behind it?
bool runs_on_runtime(const std::string& name);

/// Throws config_error naming the known engines when `name` is not one of them. `configuration.device` is ignored: the engine
/// runs where `device` is. `device` outlives the engine.
std::unique_ptr<engine> make_engine(const std::string& name, const config& configuration, const device_memory& device,
                                    const kernel_image& image);

} // namespace slipstream::engines
