#include "host/trace/trace_import.hpp"
#include "tests/fuzz/memory_file.hpp"
#include "tests/fuzz/trace_claims.hpp"

namespace slipstream::fuzz {

void trace_pair(std::string_view input)
{
    static memory_file kineto_file("kineto"), et_file("execution_trace");
    const std::size_t at = input.find(pair_separator);
    const std::string& et = et_file.write(at == std::string_view::npos ? "" : input.substr(at + pair_separator.size()));
    const std::string& kineto = kineto_file.write(input.substr(0, at));
    try {
        const trace::import_limits limits = small_limits();
        claim_sound(trace::import_kineto_with_et(kineto, et, limits), limits);
    } catch (const trace::import_error& e) {
        const std::string message = e.what();
        claim_one_line(message);
        claim(message.starts_with(kineto + ": ") || message.starts_with(et + ": "), "a refusal names one of the files");
    }
}

} // namespace slipstream::fuzz
