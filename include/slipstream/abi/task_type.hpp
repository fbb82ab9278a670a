// What the device knows of a task type: how to rebuild the task struct from a message, without knowing the struct.
#pragma once
#include <slipstream/abi/message.hpp>

namespace slipstream::abi {

inline constexpr u32 task_words_max = 64;   ///< a task struct has at most 256 bytes
inline constexpr u32 task_members_max = 16; ///< and at most 16 access members

/// One entry of the type table; plain bytes, copied to the device.
struct task_type {
    u8 words;                              ///< size of the struct in 4-byte words
    u8 brief;                              ///< 1: its bodies are brief (is_brief())
    u8 members;                            ///< access members
    u8 scalars;                            ///< words that are no part of an access member
    u16 rect_mask;                         ///< bit m: member m is a 2-D access
    u16 bytes;                             ///< sizeof the struct; 0 when empty
    u8 member_offset[task_members_max];    ///< in words, in declaration order
    u8 member_mode[task_members_max];      ///< access_mode
    u8 scalar_offset[task_words_max];      ///< in words, ascending
};
static_assert(sizeof(task_type) == 104 && std::is_trivially_copyable_v<task_type>);

} // namespace slipstream::abi
