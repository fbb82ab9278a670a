#include "host/trace/json_elements.hpp"
#include "host/trace/import_error.hpp"
#include "tests/fuzz/memory_file.hpp"
#include "tests/fuzz/target.hpp"
#include <cmath>

namespace slipstream::fuzz {
namespace {

/// Everything that can be asked of a value, at every value of a tree. Returns how many there are.
std::uint64_t walk(trace::json_value v, std::uint32_t depth)
{
    std::uint64_t values = 1, u = 0;
    std::int64_t i = 0;
    const bool is_u64 = v.to_u64(u), is_i64 = v.to_i64(i);
    if (is_u64 && is_i64) claim(static_cast<std::uint64_t>(i) == u, "a number is one number");
    if (is_i64 && !is_u64) claim(i < 0, "what only the signed read takes is negative");
    claim(v.is_number() || (!is_u64 && !is_i64), "only numbers read as numbers");
    if (is_u64) claim(v.number() == static_cast<double>(u), "a number rounds to its own");
    claim(v.type() == trace::json_type::string || v.text().empty(), "only strings have text");
    std::uint64_t children = 0;
    for (trace::json_value c = v.first_child(); c; c = v.next_child(c), ++children) {
        if (v.type() == trace::json_type::object) {
            claim(static_cast<bool>(v.find("name")) || !trace::equals_ignoring_case(c.key(), "name"),
                  "a member is found by its key");
        } else {
            claim(c.key().empty(), "only members have keys");
        }
        values += walk(c, depth + 1);
    }
    const bool container = v.type() == trace::json_type::object || v.type() == trace::json_type::array;
    claim(container || children == 0, "only containers have children");
    return values;
}

} // namespace

void json(std::string_view input)
{
    static memory_file file("json");
    const std::string& path = file.write(input);
    trace::import_limits limits;
    limits.read_bytes = 32; // tokens cross the ends of the buffer
    limits.file_bytes_max = 1024;
    limits.token_bytes_max = 400; // longer than keys that are kept whole
    limits.depth_max = 6;
    limits.element_values_max = 24;
    limits.element_bytes_max = 48;
    std::uint64_t next = 0;
    trace::json_visitor visitor;
    visitor.element = [&](std::uint64_t index, trace::json_value element) {
        claim(index == next++, "elements are counted");
        claim(walk(element, 0) <= limits.element_values_max, "an element's values are bounded");
    };
    visitor.scalar = [](std::string_view key, trace::json_value v) {
        claim(key.size() <= 256, "keys are cut");
        claim(walk(v, 0) == 1, "a scalar is one value");
    };
    visitor.other = [](std::string_view key) { claim(key.size() <= 256, "keys are cut"); };
    try {
        const bool found = trace::for_each_element(path, "nodes", true, limits, "a remedy", visitor);
        claim(found || next == 0, "elements are those of the array");
    } catch (const trace::import_error& e) {
        claim_one_line(e.what());
        claim(std::string_view(e.what()).starts_with(path + ": "), "a refusal names its file");
    }
}

} // namespace slipstream::fuzz
