// What one PyTorch execution trace (ExecutionTraceObserver JSON) says: operators, their nesting and their byte ranges.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "import_limits.hpp"
#include "recorded_trace.hpp"
#include "string_table.hpp"

namespace slipstream::trace {

inline constexpr std::uint32_t no_node = ~std::uint32_t{0};

struct execution_trace {
    struct node {
        std::uint64_t id = 0;
        std::uint64_t record_function = 0;  // rf_id; 0 for the process and thread nodes
        std::uint64_t thread = 0;
        std::uint32_t parent = no_node;     // index into `nodes`
        std::uint32_t name = 0;             // in `names`
        std::uint64_t access_first = 0;     // into `accesses`
        std::uint32_t access_count = 0;     // ranges on a device; host tensors are not ordered by us
        bool writes_device = false;
        bool has_schema = false;
        bool is_view = false;               // returns aliases and writes nothing: launches nothing
        bool is_annotation = false;         // a user's record_function range
    };

    std::string schema;
    std::uint64_t process = ~std::uint64_t{0};
    std::vector<node> nodes;            // file order
    std::vector<byte_access> accesses;  // per node sorted by (space, lo, hi), each range once
    std::vector<recorded_space> spaces;
    string_table names;
    std::uint64_t strided_tensors = 0;     // ranges taken from strides
    std::uint64_t assumed_contiguous = 0;  // device tensors without strides in the file
};

// Accepts 1.0.1 (flat nodes) to 1.1.1-chakra (attrs list). Throws import_error.
execution_trace read_execution_trace(const std::string& path, const import_limits& limits);

// By argument: whether the operator schema marks it as written, for example `Tensor(a!) self`.
std::vector<bool> written_arguments(std::string_view op_schema);

// Whether the schema's returns only alias arguments that it does not write, for example `-> Tensor(a)`.
bool is_view_schema(std::string_view op_schema);

}  // namespace slipstream::trace
