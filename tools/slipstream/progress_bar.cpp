#include "tools/slipstream/progress_bar.hpp"
#include <algorithm>
#include <cstdio>
#include <unistd.h>

namespace slipstream::cli {

progress_bar::progress_bar(std::string what) : what_(std::move(what)), terminal_(isatty(STDERR_FILENO) != 0) {}

progress_bar::~progress_bar()
{
    if (visible_) std::fprintf(stderr, "\r\033[K");
}

void progress_bar::at(double done, double total)
{
    const auto now = clock::now();
    if (!terminal_ || now - start_ < std::chrono::seconds(1) || now - drawn_ < std::chrono::milliseconds(100)) return;
    drawn_ = now;
    visible_ = true;
    constexpr int width = 30;
    const double share = total > 0 ? std::clamp(done / total, 0.0, 1.0) : 0.0;
    const int full = static_cast<int>(share * width);
    std::fprintf(stderr, "\r\033[K%s [%s%s] %3.0f %%", what_.c_str(), std::string(static_cast<std::size_t>(full), '#').c_str(),
                 std::string(static_cast<std::size_t>(width - full), '.').c_str(), share * 100);
    const double elapsed = std::chrono::duration<double>(now - start_).count();
    if (share > 0) std::fprintf(stderr, ", about %.0f s left", elapsed * (1 - share) / share);
    std::fflush(stderr);
}

} // namespace slipstream::cli
