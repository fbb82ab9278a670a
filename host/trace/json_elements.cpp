// json_elements: RapidJSON's iterative SAX parser feeding one reusable tree.
#include "json_elements.hpp"

#include <rapidjson/error/en.h>
#include <rapidjson/reader.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "gz_stream.hpp"
#include "import_error.hpp"

namespace slipstream::trace {

bool equals_ignoring_case(std::string_view a, std::string_view b) {
    if (a.size() != b.size()) return false;
    for (std::size_t i = 0; i < a.size(); ++i) {
        const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c; };
        if (lower(a[i]) != lower(b[i])) return false;
    }
    return true;
}

json_type json_value::type() const { return tree_->nodes[index_].type; }

double json_value::number() const { return tree_->nodes[index_].real; }

bool json_value::to_u64(std::uint64_t& value) const {
    const json_tree::node& n = tree_->nodes[index_];
    if (n.type != json_type::integer || n.negative) return false;
    value = n.bits;
    return true;
}

bool json_value::to_i64(std::int64_t& value) const {
    const json_tree::node& n = tree_->nodes[index_];
    if (n.type != json_type::integer) return false;
    if (!n.negative && n.bits > static_cast<std::uint64_t>(INT64_MAX)) return false;
    value = static_cast<std::int64_t>(n.bits);
    return true;
}

std::string_view json_value::text() const {
    const json_tree::node& n = tree_->nodes[index_];
    return std::string_view(tree_->chars).substr(n.text_offset, n.text_bytes);
}

std::string_view json_value::key() const {
    const json_tree::node& n = tree_->nodes[index_];
    return std::string_view(tree_->chars).substr(n.key_offset, n.key_bytes);
}

json_value json_value::first_child() const {
    const json_tree::node& n = tree_->nodes[index_];
    return index_ + 1 < n.end ? json_value(tree_, index_ + 1) : json_value();
}

json_value json_value::next_child(json_value child) const {
    const std::uint32_t next = tree_->nodes[child.index_].end;
    return next < tree_->nodes[index_].end ? json_value(tree_, next) : json_value();
}

json_value json_value::find(std::string_view key_lower) const {
    if (tree_ == nullptr || type() != json_type::object) return {};
    for (json_value c = first_child(); c; c = next_child(c))
        if (equals_ignoring_case(c.key(), key_lower)) return c;
    return {};
}

namespace {

// Follows the nesting, builds the tree of the current element and skips everything else.
class element_handler {
public:
    element_handler(gz_stream& stream, std::string_view array_key, bool root_array, const import_limits& limits,
                    const json_visitor& visitor)
        : stream_(stream), array_key_(array_key), root_array_(root_array), limits_(limits), visitor_(visitor) {}

    bool found() const { return found_; }
    std::uint64_t elements() const { return elements_; }

    bool Null() { return scalar({}); }
    bool Bool(bool b) {
        json_tree::node n;
        n.type = json_type::boolean;
        n.bits = b ? 1 : 0;
        return scalar(n);
    }
    // The parser hands numbers over as text: from_chars rounds exactly, and keeps 64-bit ids whole.
    bool RawNumber(const char* text, rapidjson::SizeType bytes, bool) {
        json_tree::node n;
        const char* const end = text + bytes;
        std::uint64_t u = 0;
        std::int64_t i = 0;
        if (const auto r = std::from_chars(text, end, u); r.ec == std::errc() && r.ptr == end) {
            n.type = json_type::integer;
            n.bits = u;
            n.real = static_cast<double>(u);
        } else if (const auto s = std::from_chars(text, end, i); s.ec == std::errc() && s.ptr == end) {
            n.type = json_type::integer;
            n.negative = i < 0;  // "-0" is zero
            n.bits = static_cast<std::uint64_t>(i);
            n.real = static_cast<double>(i);
        } else {
            n.type = json_type::real;
            const auto d = std::from_chars(text, end, n.real);
            if (d.ec == std::errc::result_out_of_range) { // too large, or too small, which is 0
                n.real = std::strtod(std::string(text, bytes).c_str(), nullptr);
                if (!std::isfinite(n.real)) fail("malformed JSON: a number beyond double precision");
            } else if (d.ec != std::errc() || d.ptr != end) fail("malformed JSON: not a number");
        }
        return scalar(n);
    }
    // Never called with kParseNumbersAsStringsFlag, but the parser's template wants them.
    bool Int(int) { return false; }
    bool Uint(unsigned) { return false; }
    bool Int64(std::int64_t) { return false; }
    bool Uint64(std::uint64_t) { return false; }
    bool Double(double) { return false; }
    bool String(const char* text, rapidjson::SizeType bytes, bool) {
        json_tree::node n;
        n.type = json_type::string;
        if (wanted()) store_text(std::string_view(text, bytes), n.text_offset, n.text_bytes);
        return scalar(n);
    }
    bool Key(const char* text, rapidjson::SizeType bytes, bool) {
        stream_.mark();
        if (depth_ == 1)
            root_key_.assign(text, std::min<std::size_t>(bytes, 256));
        else if (collecting())
            store_text(std::string_view(text, bytes), key_offset_, key_bytes_);
        return true;
    }
    bool StartObject() { return open(json_type::object); }
    bool StartArray() { return open(json_type::array); }
    bool EndObject(rapidjson::SizeType) { return close(); }
    bool EndArray(rapidjson::SizeType) { return close(); }

private:
    bool collecting() const { return array_depth_ != 0 && depth_ >= array_depth_; }
    // A scalar at this place is an element, part of one, or a member of the root object.
    bool wanted() const { return collecting() || (depth_ == 1 && !root_is_array_); }

    void store_text(std::string_view text, std::uint32_t& offset, std::uint32_t& bytes) {
        if (tree_.chars.size() + text.size() > limits_.element_bytes_max)
            fail("one element holds more than " + std::to_string(limits_.element_bytes_max) + " bytes of text");
        offset = static_cast<std::uint32_t>(tree_.chars.size());
        bytes = static_cast<std::uint32_t>(text.size());
        tree_.chars.append(text);
    }

    std::uint32_t append(json_tree::node n) {
        if (tree_.nodes.size() >= limits_.element_values_max)
            fail("one element holds more than " + std::to_string(limits_.element_values_max) + " values");
        const auto index = static_cast<std::uint32_t>(tree_.nodes.size());
        n.end = index + 1;
        n.key_offset = key_offset_;
        n.key_bytes = key_bytes_;
        key_offset_ = key_bytes_ = 0;
        tree_.nodes.push_back(n);
        return index;
    }

    void deliver() {
        visitor_.element(elements_++, tree_.root());
        tree_.clear();
        key_offset_ = key_bytes_ = 0;
    }

    bool scalar(const json_tree::node& n) {
        stream_.mark();
        if (collecting()) {
            append(n);
            if (depth_ == array_depth_) deliver();
        } else if (depth_ == 1 && !root_is_array_) {
            append(n);
            if (visitor_.scalar) visitor_.scalar(root_key_, tree_.root());
            tree_.clear();
        }
        return true;
    }

    bool open(json_type type) {
        stream_.mark();
        if (depth_ >= limits_.depth_max) fail("nested deeper than " + std::to_string(limits_.depth_max) + " levels");
        if (collecting()) {
            json_tree::node n;
            n.type = type;
            open_[depth_] = append(n);
        } else if (depth_ == 0) {
            root_is_array_ = type == json_type::array;
            if (root_is_array_ && root_array_) begin_array();
        } else if (depth_ == 1 && !root_is_array_) {
            if (type == json_type::array && equals_ignoring_case(root_key_, array_key_))
                begin_array();
            else if (visitor_.other)
                visitor_.other(root_key_);
        }
        ++depth_;
        return true;
    }

    void begin_array() {
        // Readers of JSON disagree on which of two equal keys counts.
        if (found_) fail("a second `" + std::string(array_key_) + "` array");
        found_ = true;
        array_depth_ = depth_ + 1;
    }

    bool close() {
        stream_.mark();
        --depth_;
        if (array_depth_ != 0 && depth_ + 1 == array_depth_) {
            array_depth_ = 0;  // this was the array itself
        } else if (collecting()) {
            tree_.nodes[open_[depth_]].end = static_cast<std::uint32_t>(tree_.nodes.size());
            if (depth_ == array_depth_) deliver();
        }
        return true;
    }

    [[noreturn]] void fail(const std::string& what) const {
        throw import_error(stream_.path(),
                           "byte " + std::to_string(stream_.Tell()) + ", element " + std::to_string(elements_), what,
                           stream_.remedy());
    }

    gz_stream& stream_;
    std::string_view array_key_;
    bool root_array_;
    const import_limits& limits_;
    const json_visitor& visitor_;
    json_tree tree_;
    std::string root_key_;
    std::vector<std::uint32_t> open_ = std::vector<std::uint32_t>(limits_.depth_max + 1);
    std::uint32_t depth_ = 0;        // containers that are open
    std::uint32_t array_depth_ = 0;  // value of depth_ directly inside the wanted array; 0 outside
    std::uint32_t key_offset_ = 0, key_bytes_ = 0;
    std::uint64_t elements_ = 0;
    bool root_is_array_ = false;
    bool found_ = false;
};

}  // namespace

bool for_each_element(const std::string& path, std::string_view array_key, bool root_array,
                      const import_limits& limits, const std::string& remedy, const json_visitor& visitor) {
    gz_stream stream(path, limits, remedy);
    element_handler handler(stream, array_key, root_array, limits, visitor);
    rapidjson::Reader reader;
    // Iterative: nesting costs heap that depth_max bounds, not stack. Numbers as text: time stamps use all 53 bits, and
    // RapidJSON 1.1's own full-precision conversion counts the leading zeros of zero, which is undefined. NaN and
    // Infinity are no JSON, but some writers emit them in constants that we never look at; where a number matters, the
    // importer insists on a finite one.
    constexpr unsigned flags =
        rapidjson::kParseIterativeFlag | rapidjson::kParseNumbersAsStringsFlag | rapidjson::kParseNanAndInfFlag;
    const rapidjson::ParseResult result = reader.Parse<flags>(stream, handler);
    if (result.IsError()) {
        // A parser that stopped because there was no more text says so in many different ways.
        const bool at_end = stream.Peek() == '\0';
        throw import_error(path,
                           "byte " + std::to_string(stream.Tell()) + ", element " + std::to_string(handler.elements()),
                           std::string(at_end ? "truncated JSON: " : "malformed JSON: ") +
                               rapidjson::GetParseError_En(result.Code()),
                           remedy);
    }
    return handler.found();
}

}  // namespace slipstream::trace
