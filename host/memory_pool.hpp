// A first-fit allocator over one range of addresses; bookkeeping lives on the host, the memory may be anywhere.
//
// STATES  of a piece: hole -> taken (take) -> given up (give_up: nobody's, but something may still use it) -> hole (give).
//         A piece that nobody can use any more may go from taken to hole at once.
#pragma once
#include <iterator>
#include <map>
#include <slipstream/abi/portable.hpp>
#include <utility>

namespace slipstream::host {

/// What becomes of memory that is given back. Refused memory changes nothing: a hole where none may be would be handed out.
enum class give_result {
    taken_back,
    foreign,     ///< no piece of the pool: outside of its range, or it begins where no piece does, or is of another size
    given_twice, ///< some of it was given back before
};

/// Not thread-safe: the owner locks.
class memory_pool {
public:
    static constexpr u64 alignment = 256;

    memory_pool() = default;
    memory_pool(void* base, u64 bytes) : begin_(reinterpret_cast<u64>(base)), bytes_(bytes)
    {
        if (bytes) holes_[begin_] = bytes;
    }

    /// Null when no hole is large enough.
    void* take(u64 bytes)
    {
        bytes = rounded(bytes);
        for (auto hole = holes_.begin(); hole != holes_.end(); ++hole) {
            if (hole->second < bytes) continue;
            const u64 address = hole->first;
            taken_[address] = bytes; // may throw: before anything has changed
            auto rest = holes_.extract(hole);
            rest.key() += bytes;
            rest.mapped() -= bytes;
            if (rest.mapped() != 0) holes_.insert(std::move(rest));
            return reinterpret_cast<void*>(address);
        }
        return nullptr;
    }

    /// Until give() the piece is not handed out, and a second give_up() of it is refused. Neither allocates: memory is given back
    /// where nothing may be thrown.
    [[nodiscard]] give_result give_up(void* memory, u64 bytes) noexcept
    {
        const u64 address = reinterpret_cast<u64>(memory);
        const give_result result = judge(address, bytes);
        if (result == give_result::taken_back) given_up_.insert(taken_.extract(address));
        return result;
    }

    /// Of a piece that was given up, too.
    give_result give(void* memory, u64 bytes) noexcept
    {
        const u64 address = reinterpret_cast<u64>(memory);
        piece_map::node_type piece;
        if (const auto at = given_up_.find(address); at != given_up_.end() && at->second == rounded(bytes)) {
            piece = given_up_.extract(at);
        } else {
            if (const give_result result = judge(address, bytes); result != give_result::taken_back) return result;
            piece = taken_.extract(address);
        }
        auto next = holes_.lower_bound(address);
        if (next != holes_.begin()) {
            const auto before = std::prev(next);
            if (before->first + before->second == address) {
                piece.key() = before->first;
                piece.mapped() += before->second;
                holes_.erase(before);
            }
        }
        if (next != holes_.end() && piece.key() + piece.mapped() == next->first) {
            piece.mapped() += next->second;
            holes_.erase(next);
        }
        holes_.insert(std::move(piece));
        return give_result::taken_back;
    }

private:
    using piece_map = std::map<u64, u64>; ///< address -> bytes; disjoint

    static u64 rounded(u64 bytes) { return bytes == 0 ? alignment : (bytes + alignment - 1) / alignment * alignment; }
    static bool meets(const piece_map& pieces, u64 begin, u64 end)
    {
        const auto next = pieces.lower_bound(begin);
        if (next != pieces.end() && next->first < end) return true;
        if (next == pieces.begin()) return false;
        const auto before = std::prev(next);
        return before->first + before->second > begin;
    }
    give_result judge(u64 address, u64 bytes) const
    {
        const u64 at = address - begin_; // below begin_: beyond all sizes
        if (at >= bytes_ || at % alignment != 0 || bytes > bytes_ || rounded(bytes) > bytes_ - at) return give_result::foreign;
        const u64 end = address + rounded(bytes);
        if (meets(holes_, address, end) || meets(given_up_, address, end)) return give_result::given_twice;
        const auto piece = taken_.find(address);
        return piece != taken_.end() && piece->second == rounded(bytes) ? give_result::taken_back : give_result::foreign;
    }

    u64 begin_ = 0;
    u64 bytes_ = 0;
    piece_map holes_;
    piece_map taken_;
    piece_map given_up_;
};

} // namespace slipstream::host
