// A bounded, forward-only character stream over a plain or gzip file, in the shape RapidJSON reads from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "import_limits.hpp"

struct gzFile_s;

namespace slipstream::trace {

// Keeps one buffer, whatever the size of the file. Throws import_error on a missing, empty, truncated, damaged or
// oversized file. Not thread-safe; one reader per stream.
class gz_stream {
public:
    using Ch = char;  // RapidJSON's name for the character type

    // `remedy` ends every error message of this stream: what the user should do about the file.
    gz_stream(std::string path, const import_limits& limits, std::string remedy);
    ~gz_stream();
    gz_stream(const gz_stream&) = delete;
    gz_stream& operator=(const gz_stream&) = delete;

    char Peek() { return next_ != end_ ? *next_ : refill_and_peek(); }
    char Take() {
        const char c = Peek();
        // At the end of the file Peek gives '\0' and there is nothing to step over.
        if (next_ != end_) ++next_;
        return c;
    }
    std::size_t Tell() const { return static_cast<std::size_t>(bytes_before_buffer_ + (next_ - buffer_.get())); }

    // RapidJSON wants these of every stream, and calls them only when it parses in place, which we never do.
    char* PutBegin() { return nullptr; }
    void Put(char) {}
    void Flush() {}
    std::size_t PutEnd(char*) { return 0; }

    // Tells the stream that everything before Tell() has been consumed; the token bound counts from here.
    void mark() { marked_ = Tell(); }

    const std::string& path() const { return path_; }
    const std::string& remedy() const { return remedy_; }

private:
    char refill_and_peek();
    [[noreturn]] void fail(const std::string& what) const;

    std::string path_;
    std::string remedy_;
    import_limits limits_;
    gzFile_s* file_ = nullptr;
    std::unique_ptr<char[]> buffer_;
    const char* next_ = nullptr;
    const char* end_ = nullptr;
    std::uint64_t bytes_before_buffer_ = 0;
    std::uint64_t marked_ = 0;
    bool at_end_ = false;
};

}  // namespace slipstream::trace
