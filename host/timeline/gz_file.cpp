#include "host/timeline/gz_file.hpp"
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace slipstream::timeline {

gz_file::gz_file(const std::string& path)
    : path_(path), file_(gzopen(path.c_str(), path.ends_with(".gz") ? "wb6" : "wbT")) // T: as it is
{
    if (file_ == nullptr) throw std::runtime_error(path + ": cannot be written (" + std::strerror(errno) + ")");
}

gz_file::~gz_file()
{
    if (file_ != nullptr) gzclose(file_);
}

void gz_file::Flush()
{
    if (!buffer_.empty() && gzwrite(file_, buffer_.data(), static_cast<unsigned>(buffer_.size())) <= 0) fail();
    buffer_.clear();
}

void gz_file::close()
{
    Flush();
    if (gzclose(std::exchange(file_, nullptr)) != Z_OK) fail();
}

void gz_file::fail()
{
    throw std::runtime_error(path_ + ": could not be written completely; is the disk full?");
}

} // namespace slipstream::timeline
