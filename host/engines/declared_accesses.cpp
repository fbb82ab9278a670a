// Reads the members' accesses out of the task struct, as submission does.
#include "host/engines/declared_accesses.hpp"

namespace slipstream::engines {

bool declared_accesses(const program& p, const program_task& t, std::vector<abi::access_entry>& out)
{
    out.clear();
    const abi::task_type& layout = p.image().table[t.type];
    if (t.order == ordering::whole_memory) return true;
    if (t.order == ordering::by_access && layout.members == 0 && t.access_count == 0) return true;

    const auto add = [&](access_mode mode, u64 address, u64 bytes, u64 rows, u64 pitch) {
        const auto entry = rows > 1 ? abi::access_entry::rect(mode, address, bytes, rows, pitch)
                                    : abi::access_entry::range(mode, address, bytes);
        if (entry.is_memory() && mode != access_mode::none) out.push_back(entry);
    };
    const auto* const words = static_cast<const u32*>(p.arguments(t));
    for (u32 m = 0; m < layout.members; ++m) {
        const u32 at = layout.member_offset[m];
        const u64 address = words[at] | static_cast<u64>(words[at + 1]) << 32;
        const u64 tail = words[at + 2] | static_cast<u64>(words[at + 3]) << 32;
        const bool rect = layout.rect_mask >> m & 1;
        add(static_cast<access_mode>(layout.member_mode[m]), address, tail & detail::member_bytes_max, rect ? words[at + 4] : 1,
            rect ? words[at + 5] : 0);
    }
    if (t.order == ordering::by_access)
        for (const declared_access& a : p.accesses(t)) add(a.mode, a.address, a.bytes, a.rows, a.pitch);
    return false;
}

} // namespace slipstream::engines
