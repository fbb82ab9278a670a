#include "host/trace/trace_import.hpp"
#include "tests/fuzz/memory_file.hpp"
#include "tests/fuzz/trace_claims.hpp"

namespace slipstream::fuzz {

void kineto(std::string_view input)
{
    static memory_file file("kineto");
    const std::string& path = file.write(input);
    import_with_claims(path, [&](const trace::import_limits& limits) { return trace::import_kineto(path, limits); });
}

} // namespace slipstream::fuzz
