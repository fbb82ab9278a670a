// Styles, the draw of a case, and its text.
#include "tools/slipstream/soak/soak_case.hpp"
#include "tools/slipstream/soak/soak_random.hpp"
#include <array>
#include <charconv>
#include <functional>
#include <iterator>
#include <slipstream/abi/message.hpp>
#include <slipstream/status.hpp>

namespace slipstream::soak {
namespace {

constexpr stream_style style_table[styles] = {
    // name     raw     len   join   tile listed handle after many whole blocks rows spin fail
    {"light", 10, 13, 1, 6000, 0, 0, 0, 300, 0, 1, 100, 0, 60, 0},
    {"dense", 6, 9, 8, 12000, 3000, 8000, 8000, 2000, 5, 20, 2000, 100, 2000, 0},
    {"tiles", 9, 12, 8, 2000, 40000, 8000, 16000, 1000, 5, 20, 2000, 100, 1000, 0},
    {"handles", 10, 14, 6, 20000, 6000, 6000, 56000, 1000, 5, 20, 1000, 100, 1000, 0},
    {"wide", 9, 13, 12, 4000, 6000, 20000, 12000, 12000, 100, 60, 8000, 100, 1000, 0},
    {"rows", 8, 12, 8, 4000, 4000, 4000, 12000, 1000, 2, 4, 1000, 6000, 500, 0},
    {"failing", 8, 12, 2, 0, 0, 40000, 12000, 3000, 5, 0, 2000, 300, 1000, 400},
    {"mixed", 7, 14, 16, 8000, 8000, 12000, 12000, 3000, 20, 60, 3000, 200, 2000, 0},
};

u32 style_named(const std::string& name)
{
    std::string known;
    for (u32 i = 0; i < styles; ++i) {
        if (name == style_table[i].name) return i;
        known += (i ? std::string(", ") : std::string()) + style_table[i].name;
    }
    throw config_error("style " + name + ": unknown; use one of: " + known);
}

struct key {
    const char* name;
    std::function<u64(const soak_case&)> get;
    std::function<void(soak_case&, u64)> set;
    u64 low, high;
};

const std::vector<key>& keys()
{
#define SLIPSTREAM_KEY(field, low, high)                                                                               \
    key{#field, [](const soak_case& c) { return static_cast<u64>(c.field); },                                        \
        [](soak_case& c, u64 value) { c.field = static_cast<decltype(c.field)>(value); }, low, high}
    static const std::vector<key> all{
        SLIPSTREAM_KEY(seed, 0, ~u64{0}),       SLIPSTREAM_KEY(tasks, 2, stream_tasks_max),
        SLIPSTREAM_KEY(from, 0, stream_tasks_max), SLIPSTREAM_KEY(keep, 1, ~0u),
        SLIPSTREAM_KEY(window, 2, 4096),       SLIPSTREAM_KEY(ring, 2, 1u << 24),
        SLIPSTREAM_KEY(threads, 1, 8),          SLIPSTREAM_KEY(per_sm, 1, 2),          SLIPSTREAM_KEY(workers, 1, 1024),
        SLIPSTREAM_KEY(parts, 1, abi::parts_max), SLIPSTREAM_KEY(placement, 0, ~0u),
        SLIPSTREAM_KEY(residency_ms, 1, 10000), SLIPSTREAM_KEY(parks, 0, 1),
        SLIPSTREAM_KEY(staging, 0, 1),          SLIPSTREAM_KEY(chaining, 0, 1),
        SLIPSTREAM_KEY(bypass, 0, 1),           SLIPSTREAM_KEY(broadcast, 0, 1),
        SLIPSTREAM_KEY(start, 0, u64{1} << 54), SLIPSTREAM_KEY(hide, 0, 3)};
#undef SLIPSTREAM_KEY
    return all;
}

} // namespace

const stream_style& style_of(u32 index) { return style_table[index]; }

u32 hazard_of(const std::string& name) { return name == "RAW" ? 1 : name == "WAR" ? 2 : name == "WAW" ? 3 : 0; }

std::string soak_case::text() const
{
    const soak_case usual;
    std::string out = std::string("style=") + style_of(style).name;
    for (const key& k : keys())
        if (k.get(*this) != k.get(usual) || k.name == std::string("seed") || k.name == std::string("tasks"))
            out += std::string(",") + k.name + "=" + std::to_string(k.get(*this));
    return out;
}

soak_case soak_case::read(const std::string& text)
{
    soak_case out;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = std::min(text.find(',', at), text.size());
        const std::string part = text.substr(at, end - at);
        at = end + 1;
        const std::size_t equals = std::min(part.find('='), part.size());
        const std::string name = part.substr(0, equals), value = equals < part.size() ? part.substr(equals + 1) : "";
        if (name == "style") {
            out.style = style_named(value);
            continue;
        }
        std::string known = "style";
        const key* found = nullptr;
        for (const key& k : keys()) {
            if (name == k.name) found = &k;
            known += std::string(", ") + k.name;
        }
        if (found == nullptr) throw config_error("case: unknown key '" + name + "'; use " + known);
        u64 number = 0;
        const auto [rest, problem] = std::from_chars(value.data(), value.data() + value.size(), number);
        if (problem != std::errc{} || rest != value.data() + value.size() || number < found->low || number > found->high)
            throw config_error("case: " + name + "=" + value + " cannot work; give a number from " + std::to_string(found->low)
                               + " to " + std::to_string(found->high));
        found->set(out, number);
    }
    if (out.from >= out.tasks)
        throw config_error("case: from=" + std::to_string(out.from) + " leaves none of " + std::to_string(out.tasks)
                           + " tasks; give a smaller one");
    if (out.threads >= out.window) throw config_error("case: the window must have more slots than there are threads");
    soak_case possible = out;
    possible.fit();
    if (possible.text() != out.text())
        throw config_error("case: with several parts one thread submits, the window has 16 to 512 slots "
                           "(64 with two workers an SM), a ring 4 or more, and positions begin at 0; say parts=1, or "
                           + possible.text());
    return out;
}

void soak_case::fit()
{
    if (parts == 1) {
        placement = 0;
        return;
    }
    threads = 1;
    per_sm = 1; // two are for an engine of one part
    window = std::clamp(window, 16u, 512u); // beside what parts need of a GPU's fast memory, and tasks of many pieces
    ring = std::max(ring, 4u);
    start = 0;
}

soak_case draw_case(u64 seed, u32 number, u32 style)
{
    soak_random random(seed * 0x2545f4914f6cdd1du + number);
    random.next();
    const auto one_of = [&](std::initializer_list<u32> values) {
        return values.begin()[random.below(static_cast<u32>(values.size()))];
    };
    soak_case c;
    c.style = style;
    c.seed = random.next() >> 16;
    c.threads = one_of({1, 1, 2, 3, 4});
    c.window = one_of({2, 3, 4, 16, 32, 64, 96, 256, 512, 1024});
    c.ring = one_of({2, 4, 8, 64, 1024, 16384});
    c.per_sm = random.below(6) == 0 ? 2 : 1;
    c.window = std::max(c.window, c.threads + 1);
    c.workers = one_of({1, 2, 3, 4, 8});
    c.residency_ms = one_of({1, 3, 20, 200, 200});
    c.parks = random.below(3) == 0;
    c.staging = random.below(8) != 0;
    c.chaining = random.below(4) != 0;
    c.bypass = random.below(4) != 0;
    // Positions, queue counters and mails begin so that they wrap in the first thousands of tasks: 2^32 slots or tasks, 2^27 tasks
    // (identities), 2^32 laps of the ring (tags).
    const u64 ring_laps = (u64{1} << 32) * c.ring;
    const u64 starts[] = {0, 0, (u64{1} << 32) - 700, (u64{1} << 27) - 700, ring_laps - 4 * c.ring, (u64{1} << 31) - 700};
    c.start = starts[random.below(std::size(starts))];
    // the bulk: sizes that people use, and no parks, which take most of the time there is
    if (style_of(c.style).name == std::string("light")) {
        c.window = std::max(c.window, 256u);
        c.ring = std::max(c.ring, 1024u);
        c.per_sm = 1;
        c.residency_ms = 200;
        c.parks = 0;
    }
    if (random.below(3) == 0) {
        c.parts = 2 + random.below(drawn_parts_max - 1);
        c.placement = random.below(8) == 0 ? 0 : static_cast<u32>(random.next());
    }
    c.broadcast = random.below(4) != 0;
    c.fit();
    return c;
}

} // namespace slipstream::soak
