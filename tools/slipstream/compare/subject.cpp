#include "tools/slipstream/compare/subject.hpp"
#include "tools/slipstream/program_files.hpp"
#include "tools/slipstream/usage_error.hpp"
#include "tools/slipstream/workload_choice.hpp"

namespace slipstream::cli {
namespace {

constexpr std::string_view demo_trace = "traces/dlrm_h200.kineto.json.gz";
constexpr std::string_view kineto_mark = ".kineto.json";

std::vector<std::string> split(const std::string& text, char separator)
{
    std::vector<std::string> out;
    for (std::size_t from = 0; from <= text.size();) {
        const std::size_t end = std::min(text.find(separator, from), text.size());
        out.push_back(text.substr(from, end - from));
        from = end + 1;
    }
    return out;
}

bool is_json(const std::string& name)
{
    return name.ends_with(".json") || name.ends_with(".json.gz");
}

/// The file as named, else that of the repository.
std::optional<std::string> find_file(const std::string& name)
{
    std::error_code failed;
    if (std::filesystem::exists(name, failed)) return name;
    if (const auto found = find_program_file(name)) return found->string();
    return {};
}

std::string existing(const std::string& where, const std::string& name)
{
    if (const auto found = find_file(name)) return *found;
    throw usage_error(where + ": " + name + ": no such file; give its path, or run this in the repository");
}

/// The execution trace of the same run: compressed like the Kineto file or not.
std::string execution_trace_beside(const std::string& where, const std::string& kineto)
{
    const std::size_t mark = kineto.rfind(kineto_mark);
    if (mark == std::string::npos)
        throw usage_error(where + ": not a name like X.kineto.json, so the execution trace beside it cannot be found; name both as "
                          + kineto + "+ET");
    const std::string plain = kineto.substr(0, mark) + ".et.json";
    for (const std::string& candidate : {plain + ".gz", plain})
        if (const auto found = find_file(candidate)) return *found;
    throw usage_error(where + ": no execution trace beside it (" + plain + " or " + plain + ".gz); name it as " + kineto
                      + "+ET, or use 'slipstream replay' for what a Kineto file alone tells");
}

subject parse_trace(const std::string& where, const std::string& text)
{
    subject out;
    const std::vector<std::string> files = split(text, '+');
    if (files.size() > 2) throw usage_error(where + ": more than two files; write KINETO+ET");
    for (const std::string& file : files)
        if (file.empty()) throw usage_error(where + ": a file has no name; write KINETO+ET");
    out.kineto = existing(where, files[0]);
    out.et = files.size() == 2 ? existing(where, files[1]) : execution_trace_beside(where, out.kineto);
    std::string name = out.kineto.substr(out.kineto.rfind('/') + 1);
    out.title = name.substr(0, name.find('.'));
    return out;
}

} // namespace

subject parse_subject(const std::string& text)
{
    const std::string where = "compare " + text;
    if (text == "demo") return parse_trace(where, std::string(demo_trace));
    const std::size_t colon = text.find(':');
    if (const auto* const type = find_workload(text.substr(0, colon))) {
        subject out;
        out.title = text;
        out.workload = type;
        if (colon != std::string::npos) out.given = split(text.substr(colon + 1), ',');
        out.values = workload_values(where, *type, out.given);
        return out;
    }
    if (is_json(text) || text.find('+') != std::string::npos) return parse_trace(where, text);
    throw usage_error(where + ": neither a workload nor a trace; use NAME[:key=value,...] with one of " + workload_names()
                      + ", X.kineto.json[.gz] beside its X.et.json[.gz], or demo");
}

} // namespace slipstream::cli
