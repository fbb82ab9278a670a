// Interned strings: a trace repeats a few hundred names a million times. In an ordered map: std::hash has one seed for all
// processes, so that a file could name thousands of strings of one hash, and each would be compared with all before it.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>

namespace slipstream::trace {

class string_table {
public:
    std::uint32_t id_of(std::string_view text) {
        if (const auto it = ids_.find(text); it != ids_.end()) return it->second;
        const auto id = static_cast<std::uint32_t>(texts_.size());
        bytes_ += text.size();
        texts_.emplace_back(text);  // a deque never moves its elements, so the keys below stay valid
        ids_.emplace(texts_.back(), id);
        return id;
    }
    // False when the text was never interned.
    bool find(std::string_view text, std::uint32_t& id) const {
        const auto it = ids_.find(text);
        if (it == ids_.end()) return false;
        id = it->second;
        return true;
    }
    const std::string& text(std::uint32_t id) const { return texts_[id]; }
    std::uint32_t size() const { return static_cast<std::uint32_t>(texts_.size()); }
    std::uint64_t bytes() const { return bytes_; }  // of all texts

private:
    std::deque<std::string> texts_;
    std::map<std::string_view, std::uint32_t> ids_;
    std::uint64_t bytes_ = 0;
};

}  // namespace slipstream::trace
