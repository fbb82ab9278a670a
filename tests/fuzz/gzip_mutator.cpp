// Checksums keep a fuzzer out of everything behind them: half of the mutations of a gzip file change what it holds and
// pack it again.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <zlib.h>

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t bytes, std::size_t bytes_max);

namespace {

constexpr std::size_t content_max = 16384;
constexpr int gzip_window = 15 + 16; // zlib's way to say gzip instead of zlib

/// 0: `data` is no whole gzip file of at most content_max bytes.
std::size_t unpack(const std::uint8_t* data, std::size_t bytes, std::uint8_t* content)
{
    z_stream z{};
    if (inflateInit2(&z, gzip_window) != Z_OK) return 0;
    z.next_in = const_cast<std::uint8_t*>(data);
    z.avail_in = static_cast<uInt>(bytes);
    z.next_out = content;
    z.avail_out = content_max;
    const int result = inflate(&z, Z_FINISH);
    const std::size_t got = content_max - z.avail_out;
    inflateEnd(&z);
    return result == Z_STREAM_END ? got : 0;
}

/// 0: it does not fit.
std::size_t pack(const std::uint8_t* content, std::size_t bytes, std::uint8_t* data, std::size_t bytes_max, int level)
{
    z_stream z{};
    if (deflateInit2(&z, level, Z_DEFLATED, gzip_window, 8, Z_DEFAULT_STRATEGY) != Z_OK) return 0;
    z.next_in = const_cast<std::uint8_t*>(content);
    z.avail_in = static_cast<uInt>(bytes);
    z.next_out = data;
    z.avail_out = static_cast<uInt>(bytes_max);
    const int result = deflate(&z, Z_FINISH);
    const std::size_t put = bytes_max - z.avail_out;
    deflateEnd(&z);
    return result == Z_STREAM_END ? put : 0;
}

} // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t bytes, std::size_t bytes_max, unsigned seed)
{
    static std::uint8_t content[content_max], packed[2 * content_max];
    if (seed % 2 == 0) {
        const std::size_t got = unpack(data, bytes, content);
        if (got != 0) {
            const std::size_t changed = LLVMFuzzerMutate(content, got, content_max);
            const std::size_t put = pack(content, changed, packed, std::min(bytes_max, sizeof packed), seed % 10 < 4 ? 1 : 9);
            if (put != 0) {
                std::memcpy(data, packed, put);
                return put;
            }
        }
    }
    return LLVMFuzzerMutate(data, bytes, bytes_max);
}
