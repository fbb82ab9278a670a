// A text file, written as a stream; compressed when its name ends in .gz.
#pragma once
#include <string>
#include <string_view>
#include <zlib.h>

namespace slipstream::timeline {

/// Throws std::runtime_error with the reason when the file cannot be opened or written completely. Is what RapidJSON calls an
/// output stream (Ch, Put, Flush).
class gz_file {
public:
    using Ch = char;

    explicit gz_file(const std::string& path);
    ~gz_file();
    gz_file(const gz_file&) = delete;
    gz_file& operator=(const gz_file&) = delete;

    void Put(char c)
    {
        buffer_ += c;
        if (buffer_.size() >= buffer_bytes) Flush();
    }
    void Flush();
    /// Ends the file. Without it, what was written is not complete.
    void close();

private:
    static constexpr std::size_t buffer_bytes = 1 << 16;
    [[noreturn]] void fail();

    std::string path_;
    std::string buffer_;
    gzFile file_;
};

} // namespace slipstream::timeline
