#include "host/trace/gz_stream.hpp"
#include "host/trace/import_error.hpp"
#include "tests/fuzz/memory_file.hpp"
#include "tests/fuzz/target.hpp"

namespace slipstream::fuzz {

void gzip(std::string_view input)
{
    static memory_file file("gzip");
    const std::string& path = file.write(input);
    trace::import_limits limits;
    limits.read_bytes = 256;
    limits.file_bytes_max = 8192; // a few dozen bytes make a bomb of this
    limits.token_bytes_max = 4096;
    std::uint64_t taken = 0;
    try {
        trace::gz_stream stream(path, limits, "a remedy");
        while (stream.Peek() != '\0') {
            const char seen = stream.Peek();
            claim(stream.Take() == seen, "what is taken is what was seen");
            claim(stream.Tell() == ++taken, "a place counts the bytes before it");
            if (seen == '\n') stream.mark();
        }
        claim(stream.Take() == '\0' && stream.Tell() == taken, "the end stays the end");
    } catch (const trace::import_error& e) {
        claim_one_line(e.what());
        claim(std::string_view(e.what()).starts_with(path + ": "), "a refusal names its file");
    }
    // The bound is checked once a buffer.
    claim(taken <= limits.file_bytes_max + limits.read_bytes, "no more comes out than the bound");
}

} // namespace slipstream::fuzz
