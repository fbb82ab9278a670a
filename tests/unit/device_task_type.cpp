// What describe_task finds in a struct.
#include "trace_catch.hpp"
#include <slipstream/task.hpp>
#include <vector>

using namespace slipstream;

namespace {

struct empty_task {
    template <class B> void operator()(B&) const {}
};
struct one_scalar {
    u32 a;
    template <class B> void operator()(B&) const {}
};
struct mixed {
    u32 first;      // word 0, then a word of padding
    in<float> x;    // word 2
    u64 wide;       // words 6, 7
    out2d<double> y; // word 8, six words
    u16 small;      // word 14
    u8 tiny;
    inout<u8> z;    // word 16
    float last;     // word 20, padding 21
    template <class B> void operator()(B&) const {}
};
struct tiles {
    in2d<u32> a;
    out2d<u32> b;
    inout2d<u32> c;
    template <class B> void operator()(B&) const {}
};
struct sixteen {
    in<u8> a, b, c, d, e, f, g, h, i, j, k, l, m, n, o;
    out<u8> p;
    template <class B> void operator()(B&) const {}
};
struct sixteen_scalars {
    u32 a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p;
    template <class B> void operator()(B&) const {}
};
struct point {
    float x, y;
};
struct nested {
    point at;
    in<point> data;
    template <class B> void operator()(B&) const {}
};

template <class T> constexpr std::size_t members = detail::member_count<T>();

} // namespace

TEST_CASE("an empty struct has no words and no members", "[device][task_type]")
{
    const auto t = describe_task<empty_task>();
    CHECK((t.words == 0 && t.members == 0 && t.scalars == 0 && t.rect_mask == 0));
}

TEST_CASE("a struct of scalars sends exactly its words", "[device][task_type]")
{
    const auto t = describe_task<one_scalar>();
    CHECK((t.words == 1 && t.members == 0 && t.scalars == 1 && t.scalar_offset[0] == 0));
    const auto s = describe_task<sixteen_scalars>();
    CHECK((s.words == 16 && s.members == 0 && s.scalars == 16));
    for (u32 i = 0; i < 16; ++i) CHECK(s.scalar_offset[i] == i);
}

TEST_CASE("members, scalars and padding of a mixed struct lie where the compiler put them", "[device][task_type]")
{
    const auto t = describe_task<mixed>();
    CHECK(t.words == sizeof(mixed) / 4);
    REQUIRE(t.members == 3);
    CHECK(t.member_offset[0] == offsetof(mixed, x) / 4);
    CHECK(t.member_offset[1] == offsetof(mixed, y) / 4);
    CHECK(t.member_offset[2] == offsetof(mixed, z) / 4);
    CHECK(t.member_mode[0] == static_cast<u8>(access_mode::read));
    CHECK(t.member_mode[1] == static_cast<u8>(access_mode::write));
    CHECK(t.member_mode[2] == static_cast<u8>(access_mode::read_write));
    CHECK(t.rect_mask == 0b010);
    CHECK(t.scalars == t.words - 4 - 6 - 4);
    bool seen[64] = {};
    for (u32 i = 0; i < t.scalars; ++i) {
        if (i > 0) CHECK(t.scalar_offset[i] > t.scalar_offset[i - 1]);
        seen[t.scalar_offset[i]] = true;
    }
    for (const std::size_t offset : {offsetof(mixed, first), offsetof(mixed, wide), offsetof(mixed, wide) + 4,
                                     offsetof(mixed, small), offsetof(mixed, tiny), offsetof(mixed, last)})
        CHECK(seen[offset / 4]);
    for (u32 m = 0; m < t.members; ++m) CHECK_FALSE(seen[t.member_offset[m]]);
}

TEST_CASE("2-D members are marked in the mask by member index", "[device][task_type]")
{
    const auto t = describe_task<tiles>();
    CHECK((t.members == 3 && t.rect_mask == 0b111 && t.scalars == 0 && t.words == 18));
    CHECK((t.member_offset[0] == 0 && t.member_offset[1] == 6 && t.member_offset[2] == 12));
}

TEST_CASE("sixteen access members are the most and all are found", "[device][task_type]")
{
    const auto t = describe_task<sixteen>();
    CHECK((t.words == 64 && t.members == 16 && t.scalars == 0));
    for (u32 i = 0; i < 16; ++i) CHECK((t.member_offset[i] == 4 * i && t.member_mode[i] == (i == 15 ? 2 : 1)));
}

TEST_CASE("a struct member is one member, not its fields", "[device][task_type]")
{
    CHECK(members<nested> == 2);
    const auto t = describe_task<nested>();
    CHECK((t.members == 1 && t.member_offset[0] == 2 && t.scalars == 2));
}

TEST_CASE("a member made from a handle, a pointer or a range says so in 16 bytes", "[device][task_type]")
{
    float data[8] = {};
    const in<float> raw(data, 8);
    CHECK((raw.data() == data && raw.size() == 8 && raw.bytes() == 32 && raw.handle_plus_one() == 0));
    const data_handle h{41, reinterpret_cast<u64>(data), 32, 0, 0};
    const inout<float> by_handle(h);
    CHECK((by_handle.data() == data && by_handle.size() == 8 && by_handle.handle_plus_one() == 42));
    std::vector<float> v(5);
    const out<float> whole(v);
    CHECK((whole.data() == v.data() && whole.size() == 5));
    const in2d<float> t(data, 2, 3, 16);
    CHECK((t.rows() == 2 && t.columns() == 3 && t.pitch() == 16 && t.row(1) == data + 4));
    CHECK((!std::is_assignable_v<decltype(raw[0]), float> && std::is_assignable_v<decltype(by_handle[0]), float>));
}
