// gz_stream: zlib reads both gzip and plain files; this adds the bounds and turns every failure into one line.
#include "gz_stream.hpp"

#include <zlib.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "import_error.hpp"

namespace slipstream::trace {

gz_stream::gz_stream(std::string path, const import_limits& limits, std::string remedy)
    : path_(std::move(path)), remedy_(std::move(remedy)), limits_(limits), buffer_(new char[limits.read_bytes]) {
    namespace fs = std::filesystem;
    std::error_code error;
    const fs::file_status status = fs::status(path_, error);
    if (status.type() == fs::file_type::not_found)
        throw import_error(path_, "open", "no such file", "check the path");
    if (error) throw import_error(path_, "open", error.message(), "check the path and its permissions");
    if (status.type() == fs::file_type::directory)
        throw import_error(path_, "open", "is a directory", "name the trace file inside it");
    // A pipe without a writer would block open() for ever.
    if (status.type() != fs::file_type::regular)
        throw import_error(path_, "open", "is not a regular file", "copy the trace to a file first");
    errno = 0;
    file_ = gzopen(path_.c_str(), "rb");
    if (file_ == nullptr)
        throw import_error(path_, "open", errno != 0 ? std::strerror(errno) : "cannot be opened",
                           "check that the file is readable");
    gzbuffer(file_, limits_.read_bytes);
    next_ = end_ = buffer_.get();
    try {
        if (Peek() == '\0') throw import_error(path_, "byte 0", "the file is empty", remedy_);
    } catch (...) {
        gzclose_r(file_);  // the destructor does not run when the constructor throws
        throw;
    }
}

gz_stream::~gz_stream() { gzclose_r(file_); }

void gz_stream::fail(const std::string& what) const {
    throw import_error(path_, "byte " + std::to_string(Tell()), what, remedy_);
}

char gz_stream::refill_and_peek() {
    if (at_end_) return '\0';
    bytes_before_buffer_ += static_cast<std::uint64_t>(next_ - buffer_.get());
    next_ = end_ = buffer_.get();
    if (bytes_before_buffer_ > limits_.file_bytes_max)
        fail("larger than " + std::to_string(limits_.file_bytes_max) + " bytes after decompression");
    if (bytes_before_buffer_ - marked_ > limits_.token_bytes_max)
        fail("one token is longer than " + std::to_string(limits_.token_bytes_max) + " bytes");
    const int got = gzread(file_, buffer_.get(), limits_.read_bytes);
    int code = Z_OK;
    const char* message = gzerror(file_, &code);
    if (got < 0 || (code != Z_OK && code != Z_STREAM_END)) {
        // zlib reports a gzip stream that stops early as Z_BUF_ERROR, and may do so beside the last good bytes.
        if (code == Z_BUF_ERROR) fail("truncated gzip: the compressed data stops early");
        fail(std::string("damaged gzip: ") + (message != nullptr && *message != '\0' ? message : "unreadable data"));
    }
    if (got == 0) {
        at_end_ = true;
        return '\0';
    }
    // RapidJSON takes NUL for the end of the text: let through, one would hide everything behind it.
    if (const void* nul = std::memchr(buffer_.get(), '\0', static_cast<std::size_t>(got))) {
        next_ = end_ = static_cast<const char*>(nul);
        fail("malformed JSON: a NUL byte");
    }
    end_ = buffer_.get() + got;
    return *next_;
}

}  // namespace slipstream::trace
