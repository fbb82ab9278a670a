// A workload's tasks, written once and run by any engine: the same bodies, grids, arguments and declared accesses.
#pragma once
#include <cstring>
#include <deque>
#include <slipstream/kernel_image.hpp>
#include <slipstream/submit.hpp>
#include <span>
#include <string>
#include <vector>

namespace slipstream::engines {

/// One task of a program, type-erased. What it declares is its members' accesses and the further ones in program::accesses.
struct program_task {
    u32 type = 0;            ///< index into the program's kernel image
    u32 blocks = 1;
    u32 bytes_first = 0;     ///< offset of the task struct in program::bytes, 8-byte aligned
    u32 access_first = 0;    ///< range in program::accesses; the members' accesses are not in it
    u32 access_count = 0;
    u32 after_first = 0;     ///< range in program::after: indices of earlier tasks
    u32 after_count = 0;
    ordering order = ordering::by_access;
    std::string_view name;   ///< storage: program::names or a literal
};

inline constexpr double locality_by_order = -1; ///< see program::register_range

/// Tasks in submission order. Built once, before any engine runs; engines do not change it.
class program {
public:
    explicit program(const kernel_image& image) : image_(image) {}

    /// Appends a task of type `type`; `after` holds indices of earlier tasks of this program. Returns its index.
    /// config_error, and nothing is appended: there is no such type, or no such earlier task (engines would index by them), or the
    /// number of blocks is none that a task has (engines would disagree about what that means).
    u32 add(u32 type, const void* task, u32 blocks, std::span<const declared_access> accesses, std::span<const u32> after = {},
            ordering order = ordering::by_access, std::string_view name = {})
    {
        if (type >= image_.types)
            throw config_error("task type " + std::to_string(type) + " is not in the program's list, which has "
                               + std::to_string(image_.types));
        if (blocks == 0 || blocks > 0x7fffffffu) // the runtime's bounds, and CUDA's for a grid
            throw config_error("task " + std::to_string(tasks_.size()) + " has " + std::to_string(blocks)
                               + " blocks: a task has 1 to 2147483647");
        for (const u32 earlier : after)
            if (earlier >= tasks_.size())
                throw config_error("`after` of task " + std::to_string(tasks_.size()) + " names task " + std::to_string(earlier)
                                   + ", which is not an earlier one: pass what add() returned for those");
        program_task t;
        t.type = type;
        t.blocks = blocks;
        t.bytes_first = static_cast<u32>(bytes_.size() * 8);
        const u32 bytes = image_.table[type].bytes; // need not be a multiple of four
        bytes_.resize(bytes_.size() + (bytes + 7) / 8);
        if (bytes) std::memcpy(reinterpret_cast<char*>(bytes_.data()) + t.bytes_first, task, bytes);
        t.access_first = static_cast<u32>(accesses_.size());
        t.access_count = static_cast<u32>(accesses.size());
        accesses_.insert(accesses_.end(), accesses.begin(), accesses.end());
        t.after_first = static_cast<u32>(after_.size());
        t.after_count = static_cast<u32>(after.size());
        after_.insert(after_.end(), after.begin(), after.end());
        t.order = order;
        t.name = name;
        tasks_.push_back(t);
        return static_cast<u32>(tasks_.size() - 1);
    }

    /// Declares memory as a unit of dependency. The result makes members and accesses of this program's tasks; its index is
    /// the program's own: an engine with a runtime registers all of them there and translates, others see the range.
    /// `locality`, from 0 to below 1: where it lies in what the program is about (point 3 of 10: 0.3). Pieces of near localities
    /// come to the same part of an engine (config::parts). Without it the order of registration says that.
    data_handle register_range(const void* data, u64 bytes, double locality = locality_by_order)
    {
        return register_memory(data, bytes, 0, 0, locality);
    }
    data_handle register_tile(const void* data, u64 row_bytes, u64 rows, u64 pitch, double locality = locality_by_order)
    {
        return register_memory(data, row_bytes, rows > 1 ? rows : 0, rows > 1 ? pitch : 0, locality);
    }
    const std::vector<data_handle>& registrations() const { return registrations_; }
    /// Of registration i, from 0 to below 1.
    double locality(std::size_t i) const
    {
        return localities_[i] >= 0 ? localities_[i] : static_cast<double>(i) / static_cast<double>(registrations_.size());
    }

    /// Keeps a copy of a name for the life of the program.
    std::string_view keep_name(std::string name) { return names_.emplace_back(std::move(name)); }

    const kernel_image& image() const { return image_; }
    const std::vector<program_task>& tasks() const { return tasks_; }
    const void* arguments(const program_task& t) const { return reinterpret_cast<const char*>(bytes_.data()) + t.bytes_first; }
    /// The task struct of task `task`, to be changed before an engine prepares the program.
    void* arguments(u32 task) { return reinterpret_cast<char*>(bytes_.data()) + tasks_.at(task).bytes_first; }
    /// All task structs as one block, program_task::bytes_first from its start.
    std::span<const u64> argument_words() const { return bytes_; }
    std::span<const declared_access> accesses(const program_task& t) const
    {
        return {accesses_.data() + t.access_first, t.access_count};
    }
    std::span<const u32> after(const program_task& t) const { return {after_.data() + t.after_first, t.after_count}; }
    /// Removes one declared access of a task (the body still makes it): for tests that must see `verified` turn false.
    void forget_access(u32 task, u32 index)
    {
        auto& t = tasks_.at(task);
        std::swap(accesses_[t.access_first + index], accesses_[t.access_first + t.access_count - 1]);
        --t.access_count;
        if (t.access_count == 0 && image_.table[t.type].members == 0 && t.order == ordering::by_access)
            t.order = ordering::no_access;
    }

private:
    data_handle register_memory(const void* data, u64 bytes, u64 rows, u64 pitch, double locality)
    {
        localities_.push_back(locality);
        registrations_.push_back({static_cast<u32>(registrations_.size()), reinterpret_cast<u64>(data), bytes,
                                  static_cast<u32>(rows), static_cast<u32>(pitch)});
        return registrations_.back();
    }

    kernel_image image_;
    std::vector<program_task> tasks_;
    std::vector<data_handle> registrations_;
    std::vector<double> localities_; ///< of each of them, or locality_by_order
    std::vector<u64> bytes_;
    std::vector<declared_access> accesses_;
    std::vector<u32> after_;
    std::deque<std::string> names_;
};

} // namespace slipstream::engines
