#include "tools/slipstream/json_report.hpp"
#include "tools/slipstream/commands.hpp"
#include "tools/slipstream/text_table.hpp"
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace slipstream::cli {
namespace {

// Length of the UTF-8 sequence that `text` starts with; 0: none.
std::size_t utf8_length(std::string_view text)
{
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned char first = byte(0);
    if (first < 0x80) return 1;
    const std::size_t length = first >= 0xc2 && first < 0xe0 ? 2 : first >= 0xe0 && first < 0xf0 ? 3 : first >= 0xf0 && first < 0xf5 ? 4 : 0;
    if (length == 0 || text.size() < length) return 0;
    for (std::size_t i = 1; i < length; ++i)
        if ((byte(i) & 0xc0) != 0x80) return 0;
    const bool overlong = (first == 0xe0 && byte(1) < 0xa0) || (first == 0xf0 && byte(1) < 0x90);
    const bool surrogate = first == 0xed && byte(1) >= 0xa0;
    const bool beyond = first == 0xf4 && byte(1) >= 0x90;
    return overlong || surrogate || beyond ? 0 : length;
}

} // namespace

void put(json_writer& w, std::string_view text)
{
    std::string clean;
    clean.reserve(text.size());
    while (!text.empty()) {
        const std::size_t length = utf8_length(text);
        if (length == 0)
            clean += '?';
        else
            clean += text.substr(0, length);
        text.remove_prefix(std::max<std::size_t>(length, 1));
    }
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
    field(w, "staging", o.staging);
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

report_target::report_target(const options& o) : target_(o.json)
{
    if (target_.empty() || target_ == "-") return;
    std::error_code ignored;
    const bool was_there = std::filesystem::exists(target_, ignored);
    const bool opens = static_cast<bool>(std::ofstream(target_, std::ios::app));
    const int why = errno;
    if (!opens)
        throw usage_error("--json " + target_ + ": cannot be written (" + std::strerror(why) + "); name a file in a folder that you may write to");
    if (!was_there) std::filesystem::remove(target_, ignored); // nothing is left behind when the run ends early
}

void report_target::write(const rapidjson::StringBuffer& text) const
{
    if (target_ == "-") {
        std::fwrite(text.GetString(), 1, text.GetSize(), stdout);
        std::fputc('\n', stdout);
        if (std::fflush(stdout) != 0) throw usage_error("stdout: the JSON could not be written; is the other end closed?");
        return;
    }
    std::ofstream out(target_, std::ios::trunc | std::ios::binary);
    out.write(text.GetString(), static_cast<std::streamsize>(text.GetSize()));
    out << '\n';
    out.close();
    if (!out) throw usage_error("--json " + target_ + ": could not be written completely; is the disk full?");
}

void print_rows(std::FILE* to, const std::vector<run_row>& rows)
{
    double serial = 0;
    for (const auto& row : rows)
        if (row.engine == "serial") serial = row.makespan_us.median;
    text_table table({"engine", "makespan us", "p10", "p90", "speed-up over serial", "verified"});
    for (const auto& row : rows) {
        const spread& s = row.makespan_us;
        char factor[32] = "-";
        if (serial > 0 && s.median > 0) std::snprintf(factor, sizeof factor, "%.2f", serial / s.median);
        table.add({row.engine, microseconds(s.median), microseconds(s.p10), microseconds(s.p90), factor, row.verified ? "yes" : "NO"});
    }
    table.print(to);
}

void print_phases(std::FILE* to, const std::vector<engine_runs>& runs)
{
    for (const auto& r : runs) {
        std::string line;
        for (const auto& [name, values] : r.phases)
            line += (line.empty() ? "" : ", ") + name.substr(0, name.size() - 3) + " " + microseconds(spread_of(values).median) + " us";
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
