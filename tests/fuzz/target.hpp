// What a fuzz target is: a function that takes one hostile input and returns, whatever it holds.
#pragma once
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

namespace slipstream::fuzz {

/// One for each importer of files or text that others wrote. Returns normally for every input; a claim that does not hold ends the
/// process, as a sanitizer's report does. Not thread-safe.
void kineto(std::string_view input);          ///< a Kineto file
void execution_trace(std::string_view input); ///< an execution trace
void trace_pair(std::string_view input);      ///< both of one run, with pair_separator between them
void gzip(std::string_view input);            ///< a file as it lies on disk, compressed or not
void json(std::string_view input);            ///< the reader below the trace importers, at bounds that small inputs reach
void report(std::string_view input);          ///< what --json wrote, read back
void arguments(std::string_view input);       ///< what the command line is given as text, one piece a line

inline constexpr std::string_view pair_separator = "\n=====\n";

inline void claim(bool holds, const char* what)
{
    if (holds) return;
    std::fprintf(stderr, "broken claim: %s\n", what);
    std::abort();
}

/// In a message or a note: printable, so that it stays on its line and steers no terminal.
inline void claim_one_line(std::string_view text)
{
    claim(!text.empty() && text.size() < 16384, "a line for people has a length that people read");
    for (const char c : text)
        claim(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f, "a line for people holds no control character");
}

} // namespace slipstream::fuzz
