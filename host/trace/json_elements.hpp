// Streams the elements of one array of a JSON file, one small tree at a time: never a DOM of the file.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "import_limits.hpp"

namespace slipstream::trace {

enum class json_type : std::uint8_t { null, boolean, integer, real, string, array, object };

class json_tree;

// A value inside a json_tree; trivially copyable, valid until the callback that got it returns.
class json_value {
public:
    json_value() = default;

    explicit operator bool() const { return tree_ != nullptr; }  // false: there is no such member
    json_type type() const;
    bool is_number() const { return type() == json_type::integer || type() == json_type::real; }
    double number() const;                            // only for numbers
    bool to_u64(std::uint64_t& value) const;          // false unless a whole number in range
    bool to_i64(std::int64_t& value) const;
    std::string_view text() const;                    // only for strings
    std::string_view key() const;                     // only for members of an object
    json_value find(std::string_view key_lower) const;  // member by key, case-insensitively; the first one wins

    // Children of an array or object: for (auto c = v.first_child(); c; c = v.next_child(c)).
    json_value first_child() const;
    json_value next_child(json_value child) const;

private:
    friend class json_tree;
    json_value(const json_tree* tree, std::uint32_t index) : tree_(tree), index_(index) {}
    const json_tree* tree_ = nullptr;
    std::uint32_t index_ = 0;
};

// One element as a flat pre-order array: a node's children follow it, `end` is the index behind its last descendant.
class json_tree {
public:
    struct node {
        json_type type = json_type::null;
        bool negative = false;        // of an integer: `bits` holds an int64_t
        std::uint32_t end = 0;
        std::uint32_t key_offset = 0, key_bytes = 0;
        std::uint32_t text_offset = 0, text_bytes = 0;
        std::uint64_t bits = 0;       // integer, boolean
        double real = 0;              // every number, rounded
    };
    json_value root() const { return nodes.empty() ? json_value() : json_value(this, 0); }
    void clear() {
        nodes.clear();
        chars.clear();
    }
    std::vector<node> nodes;
    std::string chars;
};

struct json_visitor {
    // One element of the array; `index` counts from 0.
    std::function<void(std::uint64_t index, json_value element)> element;
    // A scalar member of the root object, for example "schema".
    std::function<void(std::string_view key, json_value scalar)> scalar;
    // A container member of the root object other than the array.
    std::function<void(std::string_view key)> other;
};

// Reads `path` (plain or gzip) once. `array_key` is the root member whose elements are wanted; a root that is itself
// an array counts as that array when `root_array` is set. Returns whether the array was there at all. Throws
// import_error for everything that is not well-formed JSON within the limits, and for a second such array.
bool for_each_element(const std::string& path, std::string_view array_key, bool root_array,
                      const import_limits& limits, const std::string& remedy, const json_visitor& visitor);

// Equal but for ASCII case; the dialects of different years differ in little else.
bool equals_ignoring_case(std::string_view a, std::string_view b);

}  // namespace slipstream::trace
