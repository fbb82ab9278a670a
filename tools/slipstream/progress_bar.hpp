// One line on stderr that shows how far something is and how long it still takes. Appears after a second, and only on a terminal.
#pragma once
#include <chrono>
#include <string>

namespace slipstream::cli {

class progress_bar {
public:
    explicit progress_bar(std::string what);
    ~progress_bar(); ///< wipes the line
    progress_bar(const progress_bar&) = delete;
    progress_bar& operator=(const progress_bar&) = delete;

    /// `done` of `total`, in any unit. Cheap: draws at most ten times a second.
    void at(double done, double total);

private:
    using clock = std::chrono::steady_clock;
    std::string what_;
    clock::time_point start_ = clock::now();
    clock::time_point drawn_ = start_;
    bool terminal_;
    bool visible_ = false;
};

} // namespace slipstream::cli
