// The JSON of a result: where it goes, and the parts that all subcommands share.
#pragma once
#include "tools/slipstream/comparison.hpp"
#include "tools/slipstream/environment.hpp"
#include <cstdio>
#include <rapidjson/prettywriter.h>
#include <rapidjson/stringbuffer.h>
#include <string>
#include <string_view>

namespace slipstream::cli {

using json_writer = rapidjson::PrettyWriter<rapidjson::StringBuffer>;

/// Text as a JSON string; bytes that are not UTF-8 become '?'.
void put(json_writer& w, std::string_view text);
inline void put(json_writer& w, const std::string& text) { put(w, std::string_view(text)); }
inline void put(json_writer& w, const char* text) { put(w, std::string_view(text)); }
inline void put(json_writer& w, bool value) { w.Bool(value); }
inline void put(json_writer& w, u32 value) { w.Uint(value); }
inline void put(json_writer& w, u64 value) { w.Uint64(value); }
inline void put(json_writer& w, int value) { w.Int(value); }
void put(json_writer& w, double value); ///< null when it is not finite
void put(json_writer& w, const spread& value);

template <class T>
void field(json_writer& w, const char* key, const T& value)
{
    w.Key(key);
    put(w, value);
}

/// `"environment": {...}`: hardware, driver, commit, command, and the settings of the engines.
void write_environment(json_writer& w, const environment& e, const options& o);
/// `"runs": [...]`: one element an engine.
void write_runs(json_writer& w, const std::vector<engine_runs>& runs, const environment& e);

/// Throws usage_error when the file that `flag` names cannot be written; creates none.
void refuse_unwritable(const std::string& flag, const std::string& path);
/// Throws usage_error when that file is one of `others`, which are read, or written, too. Empty paths are none.
void refuse_to_overwrite(const std::string& flag, const std::string& path, std::initializer_list<std::string> others);

/// Where reports go. Opened before anything runs, so that an impossible file is refused at once (usage_error).
class report_target {
public:
    explicit report_target(const options& o);
    /// Where tables go: stdout, or stderr when stdout carries the JSON.
    std::FILE* tables() const { return target_ == "-" ? stderr : stdout; }
    bool wants_json() const { return !target_.empty(); }
    /// Throws std::runtime_error.
    void write(const rapidjson::StringBuffer& text) const;

private:
    std::string target_;
};

/// The table at the end of every comparison.
void print_rows(std::FILE* to, const std::vector<run_row>& rows);
/// Below it: medians of what engines tell of their phases, and their counts.
void print_phases(std::FILE* to, const std::vector<engine_runs>& runs);
/// Below that: why a run failed or did not verify.
void print_troubles(std::FILE* to, const std::vector<engine_runs>& runs);

} // namespace slipstream::cli
