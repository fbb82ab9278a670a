// read_kineto_log: one pass over the events, every field that is used checked for its type and range.
#include "kineto_log.hpp"

#include <charconv>
#include <cmath>

#include "import_error.hpp"
#include "json_elements.hpp"

namespace slipstream::trace {

namespace {

constexpr const char* record_again = "export the trace again with torch.profiler's export_chrome_trace";

enum class category : std::uint8_t { other, kernel, memcpy, memset, runtime, op, sync };

// The names of 2021 (Kernel, Operator, Runtime, Memcpy) differ from today's in case and prefix only.
category category_of(std::string_view cat) {
    struct entry {
        std::string_view name;
        category value;
    };
    static constexpr entry entries[] = {
        {"kernel", category::kernel},         {"gpu_memcpy", category::memcpy},  {"memcpy", category::memcpy},
        {"gpu_memset", category::memset},     {"memset", category::memset},      {"cuda_runtime", category::runtime},
        {"cuda_driver", category::runtime},   {"runtime", category::runtime},    {"driver", category::runtime},
        {"cpu_op", category::op},             {"operator", category::op},        {"user_annotation", category::op},
        {"cuda_sync", category::sync},
    };
    for (const entry& e : entries)
        if (equals_ignoring_case(cat, e.name)) return e.value;
    return category::other;
}

class kineto_reader {
public:
    kineto_reader(const std::string& path, const import_limits& limits, bool keep_ops)
        : path_(path), limits_(limits), keep_ops_(keep_ops) {}

    kineto_log read() {
        bool is_execution_trace = false;
        json_visitor visitor;
        visitor.element = [this](std::uint64_t index, json_value element) { event(index, element); };
        visitor.scalar = [](std::string_view, json_value) {};
        visitor.other = [&](std::string_view key) { is_execution_trace |= equals_ignoring_case(key, "nodes"); };
        const bool found = for_each_element(path_, "traceEvents", true, limits_, record_again, visitor);
        if (!found && is_execution_trace)
            throw import_error(path_, "root object", "is a PyTorch execution trace (`nodes`), not a Kineto trace",
                               "pass it with --et and the Kineto trace as the file to replay");
        if (!found) throw import_error(path_, "root object", "has no `traceEvents` array", record_again);
        if (log_.gpu_events.empty())
            throw import_error(path_, "traceEvents",
                               "no GPU task (kernel, gpu_memcpy, gpu_memset) among " + std::to_string(log_.events) +
                                   " events",
                               "record with ProfilerActivity.CUDA enabled on a machine with a GPU");
        return std::move(log_);
    }

private:
    [[noreturn]] void fail(std::string_view field, const std::string& what) const {
        throw import_error(path_, "event " + std::to_string(index_) + ", field " + std::string(field), what,
                           record_again);
    }

    double micros(json_value object, std::string_view key, bool may_be_negative) const {
        const json_value v = object.find(key);
        if (!v) fail(key, "missing");
        if (!v.is_number()) fail(key, "wrong type: expected a number of microseconds");
        const double us = v.number();
        // 10^17 us is the year 5138: beyond it doubles no longer resolve kernels anyway.
        if (!std::isfinite(us) || std::abs(us) > 1e17) fail(key, "not a usable time: out of range or not finite");
        if (us < 0 && !may_be_negative) fail(key, "negative duration");
        return us;
    }

    static std::string seconds(double us) { return std::to_string(static_cast<std::uint64_t>(us / 1e6)); }

    // Early files write some ids as strings. Absent or negative means unknown.
    std::uint64_t id(json_value object, std::string_view key) const {
        const json_value v = object.find(key);
        if (!v || v.type() == json_type::null) return no_id;
        std::uint64_t u = 0;
        std::int64_t i = 0;
        if (v.to_u64(u)) return u;
        if (v.to_i64(i)) return no_id;
        if (v.type() == json_type::string) {
            const std::string_view text = v.text();
            const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), u);
            if (error == std::errc() && end == text.data() + text.size()) return u;
        }
        fail(key, "wrong type: expected an integer id");
    }

    std::uint64_t whole(json_value object, std::string_view key, std::uint64_t value_max, std::uint64_t absent) const {
        const json_value v = object.find(key);
        if (!v) return absent;
        std::uint64_t u = 0;
        if (!v.to_u64(u)) {
            // Some writers put a fraction on byte counts; a whole double is good enough.
            if (!v.is_number()) fail(key, "wrong type: expected a whole number");
            const double d = v.number();
            if (!(d >= 0 && d <= 9007199254740992.0) || d != std::floor(d))
                fail(key, "expected a whole number that is not negative");
            u = static_cast<std::uint64_t>(d);
        }
        if (u > value_max) fail(key, "out of range: larger than " + std::to_string(value_max));
        return u;
    }

    // True when present. CUDA's own limits bound the values.
    bool extent(json_value object, std::string_view key, std::array<std::uint32_t, 3>& out,
                const std::array<std::uint32_t, 3>& max) const {
        const json_value v = object.find(key);
        if (!v) return false;
        if (v.type() != json_type::array) fail(key, "wrong type: expected an array of three numbers");
        std::size_t n = 0;
        for (json_value c = v.first_child(); c; c = v.next_child(c), ++n) {
            std::uint64_t u = 0;
            if (n >= 3) fail(key, "expected exactly three numbers");
            if (!c.to_u64(u)) fail(key, "wrong type: expected three whole numbers");
            if (u == 0 || u > max[n]) fail(key, "out of range: CUDA allows 1 to " + std::to_string(max[n]));
            out[n] = static_cast<std::uint32_t>(u);
        }
        if (n != 3) fail(key, "expected exactly three numbers");
        return true;
    }

    std::uint32_t intern(string_table& table, std::string_view text) const {
        const std::uint32_t id = table.id_of(text.substr(0, limits_.name_bytes_max));
        if (log_.names.bytes() + log_.threads.bytes() > limits_.names_bytes_max)
            throw import_error(path_, "event " + std::to_string(index_),
                               "more than " + std::to_string(limits_.names_bytes_max) + " bytes of different names",
                               "record fewer steps");
        return id;
    }

    std::uint32_t name_of(json_value e) {
        const json_value v = e.find("name");
        if (!v) fail("name", "missing");
        if (v.type() != json_type::string) fail("name", "wrong type: expected a string");
        return intern(log_.names, v.text());
    }

    // Thread ids are numbers today and strings in old files: compare them as text.
    std::uint32_t thread_of(json_value e) {
        const json_value v = e.find("tid");
        if (!v) fail("tid", "missing");
        if (v.type() == json_type::string) return intern(log_.threads, v.text());
        std::int64_t i = 0;
        if (!v.to_i64(i)) fail("tid", "wrong type: expected a number or a string");
        return intern(log_.threads, std::to_string(i));
    }

    void count_record() {
        if (++records_ > limits_.records_max)
            throw import_error(path_, "event " + std::to_string(index_),
                               "more than " + std::to_string(limits_.records_max) + " events to keep",
                               "record fewer steps");
    }

    void event(std::uint64_t index, json_value e) {
        index_ = index;
        ++log_.events;
        if (e.type() != json_type::object)
            throw import_error(path_, "event " + std::to_string(index), "wrong type: expected an object", record_again);
        const json_value phase = e.find("ph");
        if (!phase || phase.type() != json_type::string || phase.text() != "X") return;
        const json_value cat = e.find("cat");
        if (!cat) return;
        if (cat.type() != json_type::string) fail("cat", "wrong type: expected a string");
        const category c = category_of(cat.text());
        if (c == category::other || (c == category::op && !keep_ops_)) return;
        json_value args = e.find("args");
        if (args && args.type() != json_type::object) fail("args", "wrong type: expected an object");
        switch (c) {
            case category::kernel: gpu(e, args, task_kind::kernel); break;
            case category::memcpy: gpu(e, args, task_kind::memcpy); break;
            case category::memset: gpu(e, args, task_kind::memset); break;
            case category::runtime: runtime(e, args); break;
            case category::op: op(e, args); break;
            case category::sync: sync(e, args); break;
            case category::other: break;
        }
    }

    void gpu(json_value e, json_value args, task_kind kind) {
        if (log_.gpu_events.size() >= limits_.tasks_max)
            throw import_error(path_, "event " + std::to_string(index_),
                               "more than " + std::to_string(limits_.tasks_max) + " GPU tasks", "record fewer steps");
        kineto_log::gpu_event g;
        g.kind = kind;
        g.event = index_;
        g.name = name_of(e);
        g.start_us = micros(e, "ts", true);
        g.duration_us = micros(e, "dur", false);
        if (g.duration_us > limits_.task_us_max)
            fail("dur", "out of range: a GPU task of more than " + seconds(limits_.task_us_max) + " s");
        g.correlation = id(args, "correlation");
        g.external = id(args, "external id");
        constexpr std::uint64_t u32_max = UINT32_MAX;
        // Old files have the stream only as the row's name ("stream 7").
        std::uint64_t stream = whole(args, "stream", u32_max, no_id);
        if (stream == no_id) stream = row_number(e.find("tid"));
        g.stream = static_cast<std::uint32_t>(stream);
        g.device = static_cast<std::uint32_t>(whole(args, "device", 1u << 16, 0));
        g.shared_bytes = static_cast<std::uint32_t>(whole(args, "shared memory", u32_max, 0));
        g.has_grid = extent(args, "grid", g.grid, {2147483647u, 65535u, 65535u});
        extent(args, "block", g.block, {1024, 1024, 1024});
        if (std::uint64_t{g.block[0]} * g.block[1] * g.block[2] > 1024)
            fail("block", "out of range: CUDA allows 1024 threads in a block");
        g.bytes = whole(args, "bytes", task_bytes_max, no_id);
        g.has_bytes = g.bytes != no_id;
        if (!g.has_bytes) g.bytes = 0;
        log_.gpu_events.push_back(g);
    }

    std::uint64_t row_number(json_value tid) const {
        std::uint64_t u = 0;
        if (!tid) return 0;
        if (tid.to_u64(u)) return u & UINT32_MAX;
        if (tid.type() != json_type::string) return 0;
        const std::string_view text = tid.text();
        const std::size_t digit = text.find_first_of("0123456789");
        if (digit != std::string_view::npos) std::from_chars(text.data() + digit, text.data() + text.size(), u);
        return u & UINT32_MAX;
    }

    void runtime(json_value e, json_value args) {
        const std::uint64_t correlation = id(args, "correlation");
        const double start_us = micros(e, "ts", true);
        if (correlation == no_id || correlation == 0) return;
        count_record();
        log_.runtime_calls.push_back({start_us, correlation, thread_of(e)});
    }

    void op(json_value e, json_value args) {
        kineto_log::cpu_op o;
        o.name = name_of(e);
        // The profiler's own step marks are no operators: the execution trace does not have them.
        if (log_.names.text(o.name).starts_with("ProfilerStep")) return;
        count_record();
        o.thread = thread_of(e);
        o.start_us = micros(e, "ts", true);
        o.duration_us = micros(e, "dur", false);
        o.external = id(args, "external id");
        o.record_function = id(args, "record function id");
        o.event = index_;
        std::uint64_t process = 0;
        const json_value pid = e.find("pid");
        if (log_.process == no_id && pid && pid.to_u64(process)) log_.process = process;
        log_.cpu_ops.push_back(o);
    }

    void sync(json_value e, json_value args) {
        kineto_log::sync_event s;
        const json_value kind = args.find("cuda_sync_kind");
        const json_value name = e.find("name");
        std::string_view text;
        if (kind && kind.type() == json_type::string)
            text = kind.text();
        else if (name && name.type() == json_type::string)
            text = name.text();
        else
            fail("cuda_sync_kind", "missing");
        s.start_us = micros(e, "ts", true);
        s.correlation = id(args, "correlation");
        s.device = static_cast<std::uint32_t>(whole(args, "device", 1u << 16, 0));
        s.stream = id(args, "stream");
        s.wait_on_stream = id(args, "wait_on_stream");
        s.record_correlation = id(args, "wait_on_cuda_event_record_corr_id");
        if (equals_ignoring_case(text, "stream wait event")) {
            s.kind = kineto_log::sync_kind::stream_waits_event;
            if (s.stream == no_id || s.wait_on_stream == no_id) return count_unknown_sync();
        } else if (equals_ignoring_case(text, "event sync")) {
            s.kind = kineto_log::sync_kind::host_waits_event;
            if (s.wait_on_stream == no_id) return count_unknown_sync();
        } else if (equals_ignoring_case(text, "stream sync")) {
            s.kind = kineto_log::sync_kind::host_waits_stream;
            if (s.wait_on_stream == no_id) s.wait_on_stream = s.stream;
            if (s.wait_on_stream == no_id) return count_unknown_sync();
        } else if (equals_ignoring_case(text, "context sync")) {
            s.kind = kineto_log::sync_kind::host_waits_device;
        } else {
            return count_unknown_sync();
        }
        count_record();
        log_.sync_events.push_back(s);
    }

    void count_unknown_sync() { ++log_.sync_events_without_ids; }

    const std::string& path_;
    const import_limits& limits_;
    const bool keep_ops_;
    kineto_log log_;
    std::uint64_t index_ = 0;
    std::uint64_t records_ = 0;
};

}  // namespace

kineto_log read_kineto_log(const std::string& path, const import_limits& limits, bool keep_ops) {
    return kineto_reader(path, limits, keep_ops).read();
}

}  // namespace slipstream::trace
