// A table for people: columns as wide as their widest cell, numbers to the right.
#pragma once
#include <cstdio>
#include <string>
#include <vector>

namespace slipstream::cli {

class text_table {
public:
    /// The first column is aligned to the left, all others to the right.
    explicit text_table(std::vector<std::string> head) : rows_{std::move(head)} {}
    void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
    void print(std::FILE* to, const char* indent = "  ") const;

private:
    std::vector<std::vector<std::string>> rows_;
};

/// Microseconds with as many digits as mean something: "12.34", "1234.5", "123456".
std::string microseconds(double us);

} // namespace slipstream::cli
