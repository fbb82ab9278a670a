#include "tools/slipstream/bench/bystander.hpp"
#include <algorithm>
#include <chrono>

namespace slipstream::bench {
namespace {

class host_bystander final : public bystander {
public:
    explicit host_bystander(bool lose_a_piece) : from_(words), to_(words, 0), lose_a_piece_(lose_a_piece) {}

    u32 sms() const override { return 0; }
    u64 bytes() const override { return 2 * sizeof(u32) * u64{words}; }
    std::vector<u32> free_sms() override { return {}; }

    double run(const std::vector<u32>&) override
    {
        ++runs_;
        for (u32 i = 0; i < words; ++i) from_[i] = i + runs_;
        const auto start = std::chrono::steady_clock::now();
        for (u32 p = lose_a_piece_ ? 1 : 0; p < pieces; ++p)
            std::copy_n(from_.begin() + p * piece_words, piece_words, to_.begin() + p * piece_words);
        const std::chrono::duration<double, std::micro> taken = std::chrono::steady_clock::now() - start;
        good_ &= from_ == to_;
        return taken.count();
    }

    bool right() override { return good_ && runs_ != 0; }

private:
    static constexpr u32 pieces = 64, piece_words = 32768, words = pieces * piece_words;
    std::vector<u32> from_, to_;
    bool lose_a_piece_;
    bool good_ = true;
    u32 runs_ = 0;
};

} // namespace

std::unique_ptr<bystander> make_host_bystander(bool lose_a_piece)
{
    return std::make_unique<host_bystander>(lose_a_piece);
}

} // namespace slipstream::bench
