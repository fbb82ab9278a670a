#include "tools/slipstream/json_report.hpp"
#include "host/clean_text.hpp"
#include "tools/slipstream/commands.hpp"
#include "tools/slipstream/text_table.hpp"
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace slipstream::cli {
void put(json_writer& w, std::string_view text)
{
    const std::string clean = host::clean_text(text);
    w.String(clean.data(), static_cast<rapidjson::SizeType>(clean.size()));
}

void put(json_writer& w, double value)
{
    if (std::isfinite(value))
        w.Double(std::round(value * 1e4) / 1e4); // a tenth of a nanosecond is more than any clock here gives
    else
        w.Null();
}

void put(json_writer& w, const spread& value)
{
    w.StartObject();
    field(w, "median", value.median);
    field(w, "p10", value.p10);
    field(w, "p90", value.p90);
    if (std::isfinite(value.p99)) field(w, "p99", value.p99); // not of slopes and rates
    w.EndObject();
}

void write_environment(json_writer& w, const environment& e, const options& o)
{
    w.Key("environment");
    w.StartObject();
    field(w, "device", e.device);
    field(w, "gpu", e.gpu);
    field(w, "driver", e.driver);
    field(w, "cuda_driver", e.cuda_driver);
    field(w, "cuda_runtime", e.cuda_runtime);
    field(w, "cpu", e.cpu);
    field(w, "cores", e.cores);
    field(w, "commit", e.commit);
    field(w, "command", e.command);
    field(w, "date", e.date);
    field(w, "window", o.window);
    field(w, "ring", o.ring);
    field(w, "workers_per_sm", o.workers_per_sm);
    field(w, "parts", o.parts);
    field(w, "staging", o.staging);
    field(w, "chaining", o.chaining);
    field(w, "bypass", o.bypass);
    field(w, "broadcast", o.broadcast);
    field(w, "repeat", o.repeat);
    field(w, "seed", o.seed);
    w.EndObject();
}

void write_runs(json_writer& w, const std::vector<engine_runs>& runs, const environment& e)
{
    w.Key("runs");
    w.StartArray();
    for (const auto& r : runs) {
        w.StartObject();
        field(w, "engine", r.engine);
        field(w, "device", e.device);
        field(w, "repeats", static_cast<u64>(r.makespan_us.size()));
        field(w, "makespan_us", spread_of(r.makespan_us));
        field(w, "submit_us", spread_of(r.submit_us));
        field(w, "cpu_us", spread_of(r.cpu_us));
        field(w, "submitter_cpu_us", spread_of(r.submitter_cpu_us));
        field(w, "scheduling_sms", r.scheduling_sms);
        for (const auto& [name, values] : r.phases) field(w, name.c_str(), spread_of(values));
        for (const auto& [name, count] : r.counts) field(w, name.c_str(), count);
        field(w, "verified", r.verified);
        if (!r.trouble.empty()) field(w, "trouble", r.trouble);
        w.EndObject();
    }
    w.EndArray();
}

void refuse_unwritable(const std::string& flag, const std::string& path)
{
    std::error_code ignored;
    const bool was_there = std::filesystem::exists(path, ignored);
    const bool opens = static_cast<bool>(std::ofstream(path, std::ios::app));
    const int why = errno;
    if (!opens)
        throw usage_error(flag + " " + path + ": cannot be written (" + std::strerror(why)
                          + "); name a file in a folder that you may write to");
    if (!was_there) std::filesystem::remove(path, ignored); // nothing is left behind when the run ends early
}

void refuse_to_overwrite(const std::string& flag, const std::string& path, std::initializer_list<std::string> others)
{
    namespace fs = std::filesystem;
    const auto same = [&](const std::string& other) { // either may be there or not, and have several names
        std::error_code problem;
        if (fs::equivalent(path, other, problem)) return true;
        const fs::path a = fs::weakly_canonical(path, problem);
        return !problem && a == fs::weakly_canonical(other, problem) && !problem;
    };
    if (path.empty() || path == "-") return;
    for (const std::string& other : others)
        if (!other.empty() && same(other))
            throw usage_error(flag + " " + path + ": is the same file as " + other + ", which would be lost; name another one");
}

report_target::report_target(const options& o) : target_(o.json)
{
    if (wants_json() && target_ != "-") refuse_unwritable("--json", target_);
}

void report_target::write(const rapidjson::StringBuffer& text) const
{
    if (target_ == "-") {
        std::fwrite(text.GetString(), 1, text.GetSize(), stdout);
        std::fputc('\n', stdout);
        if (std::fflush(stdout) != 0) throw std::runtime_error("stdout: the JSON could not be written; is the other end closed?");
        return;
    }
    std::ofstream out(target_, std::ios::trunc | std::ios::binary);
    out.write(text.GetString(), static_cast<std::streamsize>(text.GetSize()));
    out << '\n';
    out.close();
    if (!out) throw std::runtime_error("--json " + target_ + ": could not be written completely; is the disk full?");
}

void print_rows(std::FILE* to, const std::vector<run_row>& rows)
{
    double serial = 0;
    for (const auto& row : rows)
        if (row.engine == "serial" && row.verified) serial = row.makespan_us.median;
    text_table table({"engine", "makespan us", "p10", "p90", "speed-up over serial", "verified"});
    for (const auto& row : rows) {
        const spread& s = row.makespan_us;
        char factor[32] = "-";
        if (serial > 0 && s.median > 0) std::snprintf(factor, sizeof factor, "%.2f", serial / s.median);
        table.add({row.engine, microseconds(s.median), microseconds(s.p10), microseconds(s.p90), factor,
                   row.verified ? "yes" : "NO"});
    }
    table.print(to);
}

void print_phases(std::FILE* to, const std::vector<engine_runs>& runs)
{
    for (const auto& r : runs) {
        std::string line;
        for (const auto& [name, values] : r.phases)
            line += (line.empty() ? "" : ", ") + name.substr(0, name.size() - 3) + " " + microseconds(spread_of(values).median)
                    + " us";
        for (const auto& [name, count] : r.counts) line += (line.empty() ? "" : ", ") + name + " " + std::to_string(count);
        if (!line.empty()) std::fprintf(to, "  %s: %s\n", r.engine.c_str(), line.c_str());
    }
}

void print_troubles(std::FILE* to, const std::vector<engine_runs>& runs)
{
    for (const auto& r : runs)
        if (!r.trouble.empty()) std::fprintf(to, "  %s: %s\n", r.engine.c_str(), r.trouble.c_str());
}

} // namespace slipstream::cli
