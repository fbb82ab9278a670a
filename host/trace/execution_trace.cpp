// read_execution_trace: one pass over the nodes. Semantics read in PyTorch's execution_trace_observer.cpp.
#include "execution_trace.hpp"

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "id_map.hpp"
#include "import_error.hpp"
#include "json_elements.hpp"

namespace slipstream::trace {

std::vector<bool> written_arguments(std::string_view schema) {
    std::vector<bool> written;
    const std::size_t open = schema.find('(');
    if (open == std::string_view::npos) return written;
    std::size_t begin = open + 1;
    int depth = 0;
    for (std::size_t i = begin; i <= schema.size(); ++i) {
        const char c = i < schema.size() ? schema[i] : ')';
        if (c == '(' || c == '[') ++depth;
        const bool last = c == ')' && depth == 0;
        if ((c == ')' || c == ']') && depth > 0) --depth;
        if (!last && !(c == ',' && depth == 0)) continue;
        std::string_view argument = schema.substr(begin, i - begin);
        argument = argument.substr(0, argument.find('='));  // a default value may hold anything
        while (!argument.empty() && argument.front() == ' ') argument.remove_prefix(1);
        begin = i + 1;
        // A lone `*` only separates keyword arguments.
        if (!argument.empty() && argument != "*") written.push_back(argument.find('!') != std::string_view::npos);
        if (last) break;
    }
    return written;
}

bool is_view_schema(std::string_view schema) {
    const std::size_t arrow = schema.rfind("->");
    if (arrow == std::string_view::npos || schema.find('!') != std::string_view::npos) return false;
    return schema.find("Tensor(", arrow) != std::string_view::npos;
}

namespace {

constexpr const char* record_again = "record the execution trace again with torch.profiler.ExecutionTraceObserver";

struct tensor {
    std::uint64_t storage = 0, offset = 0, numel = 0, itemsize = 0;
    std::string_view device;
};

class execution_trace_reader {
public:
    execution_trace_reader(const std::string& path, const import_limits& limits) : path_(path), limits_(limits) {}

    execution_trace read() {
        bool is_kineto = false;
        json_visitor visitor;
        visitor.element = [this](std::uint64_t index, json_value element) { node(index, element); };
        visitor.scalar = [this](std::string_view key, json_value v) {
            if (equals_ignoring_case(key, "schema") && v.type() == json_type::string)
                trace_.schema = printable(v.text().substr(0, 64));
            if (equals_ignoring_case(key, "pid")) v.to_u64(trace_.process);
        };
        visitor.other = [&](std::string_view key) { is_kineto |= equals_ignoring_case(key, "traceEvents"); };
        const bool found = for_each_element(path_, "nodes", false, limits_, record_again, visitor);
        if (!found && is_kineto)
            throw import_error(path_, "root object", "is a Kineto trace (`traceEvents`), not an execution trace",
                               "pass the Kineto trace as the file to replay and the execution trace with --et");
        if (!found) throw import_error(path_, "root object", "has no `nodes` array", record_again);
        if (trace_.nodes.empty()) throw import_error(path_, "nodes", "the execution trace is empty", record_again);
        link_parents();
        return std::move(trace_);
    }

private:
    [[noreturn]] void fail(std::string_view field, const std::string& what) const {
        throw import_error(path_, place_ + ", field " + std::string(field), what, record_again);
    }

    std::uint64_t whole(json_value v, std::string_view field, std::uint64_t absent) const {
        if (!v || v.type() == json_type::null) return absent;
        std::uint64_t u = 0;
        std::int64_t i = 0;
        if (v.to_u64(u)) return u;
        if (v.to_i64(i)) return absent;  // -1 stands for none
        fail(field, "wrong type: expected a whole number");
    }

    std::string_view text(json_value v, std::string_view field) const {
        if (!v || v.type() == json_type::null) return {};
        if (v.type() != json_type::string) fail(field, "wrong type: expected a string");
        return v.text();
    }

    void node(std::uint64_t index, json_value e) {
        place_ = "node " + std::to_string(index);
        if (e.type() != json_type::object)
            throw import_error(path_, place_, "wrong type: expected an object", record_again);
        if (trace_.nodes.size() >= limits_.records_max || trace_.nodes.size() >= no_node - 1)
            throw import_error(path_, place_, "more than " + std::to_string(limits_.records_max) + " nodes",
                               "record fewer steps");
        execution_trace::node n;
        const json_value id = e.find("id");
        if (!id) fail("id", "missing");
        n.id = whole(id, "id", no_value);
        if (n.id == no_value) fail("id", "negative or too large");
        place_ += " (id " + std::to_string(n.id) + ")";
        const json_value name = e.find("name");
        if (!name) fail("name", "missing");
        n.name = intern(trace_.names, text(name, "name"));

        // 1.0.1 keeps everything in the node; later schemas move most of it into a list of {name, type, value}.
        json_value rf = e.find("rf_id"), scope = e.find("scope"), tid = e.find("tid"), schema = e.find("op_schema");
        if (const json_value attrs = e.find("attrs"); attrs) {
            if (attrs.type() != json_type::array) fail("attrs", "wrong type: expected an array");
            for (json_value a = attrs.first_child(); a; a = attrs.next_child(a)) {
                const json_value key = a.find("name");
                if (!key || key.type() != json_type::string) fail("attrs", "an attribute without a name");
                const json_value value = a.find("value");
                if (key.text() == "rf_id") rf = value;
                else if (key.text() == "scope") scope = value;
                else if (key.text() == "tid") tid = value;
                else if (key.text() == "op_schema") schema = value;
            }
        }
        n.record_function = whole(rf, "rf_id", 0);
        n.thread = whole(tid, "tid", 0);
        constexpr std::uint64_t user_scope = 7;
        n.is_annotation = whole(scope, "scope", 0) == user_scope;
        const std::string_view op_schema = text(schema, "op_schema");
        n.has_schema = !op_schema.empty();
        n.is_view = is_view_schema(op_schema);

        const json_value parent = e.find("parent") ? e.find("parent") : e.find("ctrl_deps");
        std::uint64_t parent_id = no_value;
        if (parent && parent.type() == json_type::array) {
            // Chakra proper has a list here; the first entry is the enclosing operator.
            if (parent.first_child()) parent_id = whole(parent.first_child(), "ctrl_deps", no_value);
        } else {
            parent_id = whole(parent, "parent", no_value);
        }
        parent_ids_.push_back(parent_id);

        n.access_first = trace_.accesses.size();
        read_accesses(e, op_schema);
        merge_accesses(n);
        trace_.nodes.push_back(n);
    }

    // Values with shapes and strides beside them: members of the node in 1.0.1, of one object later.
    struct argument_list {
        json_value values, shapes, strides;
    };

    argument_list arguments(json_value e, std::string_view side, std::string_view shapes_key,
                            std::string_view strides_key) const {
        argument_list list;
        const json_value v = e.find(side);
        if (!v) return list;
        if (v.type() == json_type::object) {
            list = {v.find("values"), v.find("shapes"), v.find("strides")};
        } else {
            list = {v, e.find(shapes_key), e.find(strides_key)};
        }
        for (const json_value& part : {list.values, list.shapes, list.strides})
            if (part && part.type() != json_type::array) fail(side, "wrong type: expected an array");
        return list;
    }

    void read_accesses(json_value e, std::string_view op_schema) {
        const argument_list in = arguments(e, "inputs", "input_shapes", "input_strides");
        if (in.values) {
            const std::vector<bool> written = written_arguments(op_schema);
            std::size_t argument = 0;
            json_value shape = in.shapes ? in.shapes.first_child() : json_value();
            json_value stride = in.strides ? in.strides.first_child() : json_value();
            for (json_value v = in.values.first_child(); v; v = in.values.next_child(v), ++argument) {
                add_value(v, shape, stride, true, argument < written.size() && written[argument]);
                if (shape) shape = in.shapes.next_child(shape);
                if (stride) stride = in.strides.next_child(stride);
            }
        }
        const argument_list out = arguments(e, "outputs", "output_shapes", "output_strides");
        if (out.values) {
            json_value shape = out.shapes ? out.shapes.first_child() : json_value();
            json_value stride = out.strides ? out.strides.first_child() : json_value();
            for (json_value v = out.values.first_child(); v; v = out.values.next_child(v)) {
                add_value(v, shape, stride, false, true);
                if (shape) shape = out.shapes.next_child(shape);
                if (stride) stride = out.strides.next_child(stride);
            }
        }
    }

    // A tensor, or a list (of lists; depth_max of the parser bounds the recursion) that may hold tensors.
    void add_value(json_value v, json_value shape, json_value stride, bool reads, bool writes) {
        if (v.type() != json_type::array) return;
        tensor t;
        if (is_tensor(v, t)) {
            add_tensor(t, shape, stride, reads, writes);
            return;
        }
        const auto first = [](json_value list) {
            return list && list.type() == json_type::array ? list.first_child() : json_value();
        };
        json_value s = first(shape), d = first(stride);
        for (json_value c = v.first_child(); c; c = v.next_child(c)) {
            add_value(c, s, d, reads, writes);
            if (s) s = shape.next_child(s);
            if (d) d = stride.next_child(d);
        }
    }

    // [tensor_id, storage_id, offset, numel, itemsize, device]: five whole numbers and a string, nothing else has that.
    bool is_tensor(json_value v, tensor& t) const {
        std::size_t n = 0;
        bool integers = true, negative = false;
        std::uint64_t field[5] = {};
        for (json_value c = v.first_child(); c; c = v.next_child(c), ++n) {
            if (n < 5) {
                std::int64_t i = 0;
                if (c.type() != json_type::integer) integers = false;
                else if (!c.to_u64(field[n])) negative = c.to_i64(i);
            } else if (n == 5) {
                if (c.type() != json_type::string) return false;
                t.device = c.text();
            }
            if (n > 5 || !integers) return false;
        }
        if (n != 6) return false;
        if (negative) fail("inputs/outputs", "a tensor with a negative field");
        t.storage = field[1];
        t.offset = field[2];
        t.numel = field[3];
        t.itemsize = field[4];
        return true;
    }

    static bool on_device(std::string_view device) {
        return !device.empty() && !device.starts_with("cpu") && !device.starts_with("meta") && device != "None";
    }

    // Elements from the first to one behind the last that the strides reach; false when shape or strides do not fit.
    bool strided_extent(json_value shape, json_value stride, std::uint64_t& extent) const {
        if (!shape || !stride || shape.type() != json_type::array || stride.type() != json_type::array) return false;
        extent = 1;
        json_value d = shape.first_child(), s = stride.first_child();
        for (; d && s; d = shape.next_child(d), s = stride.next_child(s)) {
            std::uint64_t size = 0, step = 0, reach = 0;
            if (!d.to_u64(size) || !s.to_u64(step) || size == 0) return false;
            if (__builtin_mul_overflow(size - 1, step, &reach) || __builtin_add_overflow(extent, reach, &extent))
                fail("strides", "a tensor that does not fit in 64 bits");
        }
        return !d && !s;
    }

    void add_tensor(const tensor& t, json_value shape, json_value stride, bool reads, bool writes) {
        if (t.storage == 0 || t.numel == 0 || t.itemsize == 0 || !on_device(t.device)) return;
        std::uint64_t elements = t.numel;
        if (strided_extent(shape, stride, elements)) {
            ++trace_.strided_tensors;
        } else {
            elements = t.numel;
            ++trace_.assumed_contiguous;
        }
        byte_access a;
        std::uint64_t end = 0;
        if (__builtin_add_overflow(t.offset, elements, &end) || __builtin_mul_overflow(end, t.itemsize, &a.hi) ||
            __builtin_mul_overflow(t.offset, t.itemsize, &a.lo) || a.hi > tensor_end_max)
            fail("inputs/outputs", "a tensor that does not fit in " + std::to_string(tensor_end_max) + " bytes");
        a.space = space_of(t);
        a.reads = reads;
        a.writes = writes;
        recorded_space& space = trace_.spaces[a.space];
        space.bytes = std::max(space.bytes, a.hi);
        if (trace_.accesses.size() >= limits_.accesses_max)
            throw import_error(path_, place_, "more than " + std::to_string(limits_.accesses_max) + " byte ranges",
                               "record fewer steps");
        trace_.accesses.push_back(a);
    }

    // The observer keys storage ids on the data pointer and never retires them, so memory that the allocator reuses
    // keeps its id: one space per (device, id) shows reuse as WAR and WAW, as an address table would.
    std::uint32_t space_of(const tensor& t) {
        const std::uint32_t device = intern(devices_, t.device);
        const auto [it, fresh] =
            space_ids_.try_emplace({t.storage, device}, static_cast<std::uint32_t>(trace_.spaces.size()));
        if (!fresh) return it->second;
        if (trace_.spaces.size() >= limits_.spaces_max)
            throw import_error(path_, place_, "more than " + std::to_string(limits_.spaces_max) + " storages",
                               "record fewer steps");
        trace_.spaces.push_back({t.storage, devices_.text(device), 0});
        return it->second;
    }

    std::uint32_t intern(string_table& table, std::string_view text) const {
        const std::uint32_t id = table.id_of(text.substr(0, limits_.name_bytes_max));
        if (trace_.names.bytes() + devices_.bytes() > limits_.names_bytes_max)
            throw import_error(path_, place_,
                               "more than " + std::to_string(limits_.names_bytes_max) + " bytes of different names",
                               "record fewer steps");
        return id;
    }

    void merge_accesses(execution_trace::node& n) {
        auto& all = trace_.accesses;
        const auto first = all.begin() + static_cast<std::ptrdiff_t>(n.access_first);
        std::sort(first, all.end(), [](const byte_access& a, const byte_access& b) {
            return std::tie(a.space, a.lo, a.hi) < std::tie(b.space, b.lo, b.hi);
        });
        auto kept = first;
        for (auto it = first; it != all.end(); ++it) {
            n.writes_device |= it->writes;
            if (kept != first && (kept - 1)->space == it->space && (kept - 1)->lo == it->lo && (kept - 1)->hi == it->hi) {
                (kept - 1)->reads |= it->reads;
                (kept - 1)->writes |= it->writes;
            } else {
                *kept++ = *it;
            }
        }
        all.erase(kept, all.end());
        n.access_count = static_cast<std::uint32_t>(all.size() - n.access_first);
    }

    void link_parents() {
        id_map<std::uint32_t> index_of;
        index_of.reserve(trace_.nodes.size());
        for (std::uint32_t i = 0; i < trace_.nodes.size(); ++i)
            if (!index_of.emplace(trace_.nodes[i].id, i).second)
                throw import_error(path_, "node " + std::to_string(i) + " (id " + std::to_string(trace_.nodes[i].id) + ")",
                                   "a second node with this id", record_again);
        for (std::uint32_t i = 0; i < trace_.nodes.size(); ++i) {
            const auto it = index_of.find(parent_ids_[i]);
            if (it != index_of.end() && it->second != i) trace_.nodes[i].parent = it->second;
        }
        refuse_circles();
    }

    // Of a circle each node would be an ancestor of its own, and none of its operators a task.
    void refuse_circles() const {
        constexpr std::uint32_t on_no_way = 0;
        std::vector<std::uint32_t> way(trace_.nodes.size(), on_no_way);  // the number of the one that came here first
        for (std::uint32_t start = 0; start < way.size(); ++start) {
            std::uint32_t n = start;
            while (n != no_node && way[n] == on_no_way) {
                way[n] = start + 1;
                n = trace_.nodes[n].parent;
            }
            if (n != no_node && way[n] == start + 1)
                throw import_error(path_, "node " + std::to_string(n) + " (id " + std::to_string(trace_.nodes[n].id) + ")",
                                   "its parents form a circle", record_again);
        }
    }

    static constexpr std::uint64_t no_value = ~std::uint64_t{0};
    const std::string& path_;
    const import_limits& limits_;
    execution_trace trace_;
    std::string place_;
    std::vector<std::uint64_t> parent_ids_;
    string_table devices_;
    std::map<std::pair<std::uint64_t, std::uint32_t>, std::uint32_t> space_ids_;
};

}  // namespace

execution_trace read_execution_trace(const std::string& path, const import_limits& limits) {
    return execution_trace_reader(path, limits).read();
}

}  // namespace slipstream::trace
