#include "tools/slipstream/committed_result.hpp"
#include "host/trace/import_error.hpp"
#include "tools/slipstream/json_report.hpp"
#include <filesystem>
#include <fstream>
#include <iterator>
#include <rapidjson/document.h>
#include <spdlog/spdlog.h>

namespace slipstream::cli {
namespace {

// A report of thousands of runs; its tree takes a multiple of that.
constexpr std::uintmax_t report_bytes_max = 4u << 20;

std::string text_of(const rapidjson::Value& object, const char* key)
{
    const auto it = object.FindMember(key);
    if (it == object.MemberEnd() || !it->value.IsString()) return {};
    return trace::printable(std::string_view(it->value.GetString(), it->value.GetStringLength()).substr(0, 256));
}

std::string stem_of(const rapidjson::Value& object, const char* key)
{
    const auto it = object.FindMember(key);
    if (it == object.MemberEnd() || !it->value.IsString()) return {};
    return trace_stem(std::string(it->value.GetString(), it->value.GetStringLength()));
}

double number_of(const rapidjson::Value& object, const char* key)
{
    const auto it = object.FindMember(key);
    return it != object.MemberEnd() && it->value.IsNumber() ? it->value.GetDouble() : 0;
}

} // namespace

std::string trace_stem(const std::string& trace_path)
{
    std::string name = std::filesystem::path(trace_path).filename().string();
    for (const std::string ending : {".gz", ".json", ".kineto", ".et"})
        if (name.size() > ending.size() && name.ends_with(ending)) name.resize(name.size() - ending.size());
    return name;
}

std::optional<committed_result> find_committed_result(const committed_subject& subject)
{
    // A Kineto file alone has other edges than with its execution trace, and that alone no durations: other programs.
    if (subject.kineto.empty() || subject.et.empty()) return {};
    const std::string mode = subject.mode == "back-to-back" ? "" : "." + subject.mode;
    const std::filesystem::path path =
        std::filesystem::path(subject.kineto).parent_path() / "results" / (trace_stem(subject.kineto) + mode + ".h200.json");
    std::error_code missing;
    const auto bytes = std::filesystem::file_size(path, missing);
    if (missing) return {};
    const char* why = "too large for a report of this tool";
    if (bytes <= report_bytes_max) {
        std::ifstream in(path, std::ios::binary);
        const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
        if (auto out = parse_committed_result(text, path.string(), why)) {
            const bool same = out->mode == subject.mode && out->kineto == trace_stem(subject.kineto)
                              && out->et == trace_stem(subject.et) && out->tasks == subject.tasks;
            return same ? out : std::nullopt;
        }
    }
    spdlog::warn("{}: {}; ignored", path.string(), why);
    return {};
}

std::optional<committed_result> parse_committed_result(std::string_view text, const std::string& path, const char*& why)
{
    rapidjson::Document json;
    // Iterative: nesting costs heap, which the size of the text bounds, and no stack.
    json.Parse<rapidjson::kParseIterativeFlag>(text.data(), text.size());
    if (json.HasParseError() || !json.IsObject()) {
        why = "not well-formed JSON";
        return {};
    }
    const auto environment = json.FindMember("environment");
    const auto runs = json.FindMember("runs");
    if (environment == json.MemberEnd() || !environment->value.IsObject() || runs == json.MemberEnd() || !runs->value.IsArray()) {
        why = "not a report of this tool";
        return {};
    }

    committed_result out;
    out.path = path;
    out.device = text_of(environment->value, "device");
    out.gpu = text_of(environment->value, "gpu");
    out.driver = text_of(environment->value, "driver");
    out.commit = text_of(environment->value, "commit");
    out.date = text_of(environment->value, "date");
    out.mode = text_of(json, "mode");
    if (const auto trace = json.FindMember("trace"); trace != json.MemberEnd() && trace->value.IsObject()) {
        out.kineto = stem_of(trace->value, "kineto");
        out.et = stem_of(trace->value, "et");
        if (const auto tasks = trace->value.FindMember("tasks"); tasks != trace->value.MemberEnd() && tasks->value.IsUint64())
            out.tasks = tasks->value.GetUint64();
    }
    for (const auto& run : runs->value.GetArray()) {
        if (!run.IsObject()) continue;
        run_row row;
        row.engine = text_of(run, "engine");
        const auto makespan = run.FindMember("makespan_us");
        if (makespan != run.MemberEnd() && makespan->value.IsObject())
            row.makespan_us = {number_of(makespan->value, "median"), number_of(makespan->value, "p10"),
                               number_of(makespan->value, "p90")};
        const auto verified = run.FindMember("verified");
        row.verified = verified != run.MemberEnd() && verified->value.IsBool() && verified->value.GetBool();
        out.rows.push_back(std::move(row));
    }
    return out;
}

void print_committed_result(std::FILE* to, const committed_result& r)
{
    std::fprintf(to, "\nCommitted result of the same trace, %s, on %s, driver %s, commit %s (%s):\n", r.mode.c_str(),
                 r.gpu.empty() ? r.device.c_str() : r.gpu.c_str(), r.driver.empty() ? "unknown" : r.driver.c_str(),
                 r.commit.empty() ? "unknown" : r.commit.c_str(),
                 r.date.empty() ? r.path.c_str() : (r.date + ", " + r.path).c_str());
    print_rows(to, r.rows);
}

} // namespace slipstream::cli
