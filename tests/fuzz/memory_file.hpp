// A file that lives in memory only: importers take paths, and a disk would be most of the time of a run.
#pragma once
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <sys/mman.h>
#include <unistd.h>

namespace slipstream::fuzz {

class memory_file {
public:
    explicit memory_file(const char* name) : descriptor_(memfd_create(name, MFD_CLOEXEC))
    {
        if (descriptor_ < 0) throw std::runtime_error(std::string("memfd_create: ") + std::strerror(errno));
        path_ = "/proc/self/fd/" + std::to_string(descriptor_);
    }
    ~memory_file() { close(descriptor_); }
    memory_file(const memory_file&) = delete;
    memory_file& operator=(const memory_file&) = delete;

    /// Opens like any file, until the next write().
    const std::string& path() const { return path_; }

    const std::string& write(std::string_view content)
    {
        if (ftruncate(descriptor_, 0) != 0
            || pwrite(descriptor_, content.data(), content.size(), 0) != static_cast<ssize_t>(content.size()))
            throw std::runtime_error(std::string("memory file: ") + std::strerror(errno));
        return path_;
    }

private:
    int descriptor_;
    std::string path_;
};

} // namespace slipstream::fuzz
