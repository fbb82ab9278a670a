// The entry point that libFuzzer calls; SLIPSTREAM_FUZZ_TARGET names the target.
#include "tests/fuzz/target.hpp"
#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes)
{
    slipstream::fuzz::SLIPSTREAM_FUZZ_TARGET({reinterpret_cast<const char*>(data), bytes});
    return 0;
}
