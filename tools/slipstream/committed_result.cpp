#include "tools/slipstream/committed_result.hpp"
#include "tools/slipstream/json_report.hpp"
#include <filesystem>
#include <fstream>
#include <iterator>
#include <rapidjson/document.h>
#include <spdlog/spdlog.h>

namespace slipstream::cli {
namespace {

constexpr std::uintmax_t report_bytes_max = 16u << 20;

std::string text_of(const rapidjson::Value& object, const char* key)
{
    const auto it = object.FindMember(key);
    return it != object.MemberEnd() && it->value.IsString() ? std::string(it->value.GetString(), it->value.GetStringLength())
                                                            : std::string();
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

std::optional<committed_result> find_committed_result(const std::string& trace_path)
{
    const std::filesystem::path path
        = std::filesystem::path(trace_path).parent_path() / "results" / (trace_stem(trace_path) + ".h200.json");
    std::error_code missing;
    const auto bytes = std::filesystem::file_size(path, missing);
    if (missing) return {};
    const auto ignore = [&](const char* why) {
        spdlog::warn("{}: {}; ignored", path.string(), why);
        return std::optional<committed_result>();
    };
    if (bytes > report_bytes_max) return ignore("too large for a report of this tool");
    std::ifstream in(path, std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    rapidjson::Document json;
    json.Parse<rapidjson::kParseIterativeFlag>(text.data(), text.size());
    if (json.HasParseError() || !json.IsObject()) return ignore("not well-formed JSON");
    const auto environment = json.FindMember("environment");
    const auto runs = json.FindMember("runs");
    if (environment == json.MemberEnd() || !environment->value.IsObject() || runs == json.MemberEnd() || !runs->value.IsArray())
        return ignore("not a report of this tool");

    committed_result out;
    out.path = path.string();
    out.device = text_of(environment->value, "device");
    out.gpu = text_of(environment->value, "gpu");
    out.driver = text_of(environment->value, "driver");
    out.commit = text_of(environment->value, "commit");
    out.date = text_of(environment->value, "date");
    for (const auto& run : runs->value.GetArray()) {
        if (!run.IsObject()) continue;
        run_row row;
        row.engine = text_of(run, "engine");
        const auto makespan = run.FindMember("makespan_us");
        if (makespan != run.MemberEnd() && makespan->value.IsObject())
            row.makespan_us = {number_of(makespan->value, "median"), number_of(makespan->value, "p10"), number_of(makespan->value, "p90")};
        const auto verified = run.FindMember("verified");
        row.verified = verified != run.MemberEnd() && verified->value.IsBool() && verified->value.GetBool();
        out.rows.push_back(std::move(row));
    }
    return out;
}

void print_committed_result(std::FILE* to, const committed_result& r)
{
    std::fprintf(to, "\nCommitted result of the same trace on %s, driver %s, commit %s (%s):\n",
                 r.gpu.empty() ? r.device.c_str() : r.gpu.c_str(), r.driver.empty() ? "unknown" : r.driver.c_str(),
                 r.commit.empty() ? "unknown" : r.commit.c_str(), r.date.empty() ? r.path.c_str() : (r.date + ", " + r.path).c_str());
    print_rows(to, r.rows);
}

} // namespace slipstream::cli
