// Runs the seeds of a fuzz target, and mutants of them, with any compiler: a test of CTest where libFuzzer is not at hand.
//
//     fuzz_corpus TARGET FOLDER [--mutants N] [--seed S]      the same seed makes the same mutants
#include "tests/fuzz/target.hpp"
#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

namespace {

using namespace slipstream::fuzz;

struct named_target {
    std::string_view name;
    void (*run)(std::string_view);
};

constexpr named_target targets[] = {
    {"arguments", arguments}, {"execution_trace", execution_trace}, {"gzip", gzip}, {"json", json},
    {"kineto", kineto},       {"report", report},                   {"trace_pair", trace_pair},
};

/// What breaks parsers more often than chance would try.
constexpr std::string_view tokens[] = {
    "{",    "}",     "[",          "]",     ",",     ":",   "\"",  "\\",  "\\u0000", "\\ud800", "null",  "true", "-1", "0",    "-0",
    "1e17", "1e999", "-1e-999",    "NaN",   "\x1b[", "\n",  "\xff", "18446744073709551615",     "-9223372036854775808",
    "9223372036854775808",         "4294967296",     "2147483648",  "1e308", "0.5",  "[[", "]]", "{\"a\":",     "\"\"",
};

class mutator {
public:
    explicit mutator(std::uint64_t seed) : random_(seed) {}

    std::string mutant(const std::vector<std::string>& seeds)
    {
        std::string text = seeds[below(seeds.size())];
        for (std::uint64_t n = 1 + below(4); n > 0; --n) change(text, seeds[below(seeds.size())]);
        return text;
    }

private:
    std::size_t below(std::size_t n) { return n == 0 ? 0 : static_cast<std::size_t>(random_() % n); }

    void change(std::string& text, const std::string& other)
    {
        const std::size_t at = below(text.size() + 1), length = below(std::min<std::size_t>(text.size() - at + 1, 64));
        switch (below(7)) {
        case 0: // a bit
            if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << below(8)));
            break;
        case 1: text.resize(at); break;
        case 2: text.erase(at, length); break;
        case 3: text.insert(at, tokens[below(std::size(tokens))]); break;
        case 4: text.replace(at, length, tokens[below(std::size(tokens))]); break;
        case 5: text.insert(at, text.substr(below(text.size() + 1), 64)); break;
        default: text.insert(at, other.substr(below(other.size() + 1), 128)); break;
        }
        if (text.size() > 65536) text.resize(65536);
    }

    std::mt19937_64 random_;
};

int usage()
{
    std::fprintf(stderr, "usage: fuzz_corpus TARGET FOLDER [--mutants N] [--seed S]\n");
    return 2;
}

} // namespace

int main(int count, char** words)
{
    if (count < 3 || count % 2 == 0) return usage();
    const auto* const target = std::find_if(std::begin(targets), std::end(targets),
                                            [&](const named_target& t) { return t.name == words[1]; });
    if (target == std::end(targets)) return usage();
    std::uint64_t mutants = 0, seed = 1;
    for (int i = 3; i < count; i += 2) {
        const std::string_view flag = words[i], value = words[i + 1];
        if (flag != "--mutants" && flag != "--seed") return usage();
        std::uint64_t& number = flag == "--seed" ? seed : mutants;
        if (std::from_chars(value.data(), value.data() + value.size(), number).ptr != value.data() + value.size()) return usage();
    }
    // In the order of their names: the order of a folder is nobody's promise, and mutants depend on it.
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(words[2]))
        if (entry.is_regular_file()) files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    std::vector<std::string> seeds;
    for (const auto& file : files) {
        std::ifstream in(file, std::ios::binary);
        seeds.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
        target->run(seeds.back());
    }
    if (seeds.empty()) {
        std::fprintf(stderr, "no seeds in %s\n", words[2]);
        return 1;
    }
    mutator source(seed);
    for (std::uint64_t i = 0; i < mutants; ++i) target->run(source.mutant(seeds));
    std::printf("%s: %zu seeds and %llu mutants of seed %llu\n", words[1], seeds.size(), static_cast<unsigned long long>(mutants),
                static_cast<unsigned long long>(seed));
    return 0;
}
