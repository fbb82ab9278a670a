#include "host/trace/trace_import.hpp"
#include "tests/fuzz/memory_file.hpp"
#include "tests/fuzz/trace_claims.hpp"

namespace slipstream::fuzz {

void execution_trace(std::string_view input)
{
    static memory_file file("execution_trace");
    const std::string& path = file.write(input);
    import_with_claims(path, [&](const trace::import_limits& limits) { return trace::import_execution_trace(path, limits); });
}

} // namespace slipstream::fuzz
