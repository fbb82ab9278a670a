// The model platform: protocol code runs on it unchanged, every atomic operation and every plain cell under the explorer.
//
// model_platform<1> roles have one lane (collectives are identities), model_platform<4> roles are spawned with spawn_team.
// model_platform<1, 2> and <1, 3> have crews of two and three teams of one lane: a crew is spawned as a team of so many lanes.
// Words are shared types of both. Nothing here has `.raw`: what bypasses the Platform does not compile.
#pragma once
#include "tests/model/engine.hpp"
#include "tests/model/explorer.hpp"
#include <cstring>
#include <utility>

namespace slipstream::model {

namespace detail {

/// Base of words and cells: knows its number in the running execution.
class registered {
public:
    registered() = default;
    registered(const registered&) = delete;
    registered& operator=(const registered&) = delete;

protected:
    u32 number(u32 (*add)()) const
    {
        if (epoch_ != engine::epoch()) {
            epoch_ = engine::epoch();
            number_ = add();
        }
        return number_;
    }

private:
    mutable u64 epoch_ = 0;
    mutable u32 number_ = 0;
};

} // namespace detail

template <class T>
class word : detail::registered {
    static_assert(sizeof(T) == 4 || sizeof(T) == 8);
    static_assert(std::is_trivially_copyable_v<T>);

public:
    u32 location() const { return number(engine::register_word); }
};

class chunk_word : detail::registered {
public:
    u32 location() const { return number(engine::register_word); }
};

template <class T>
class cell : detail::registered {
    static_assert(std::is_trivially_copyable_v<T>);

public:
    T get() const
    {
        engine::cell_access(number(engine::register_cell), engine::cell_use::read);
        return value_;
    }
    void set(const T& v)
    {
        engine::cell_access(number(engine::register_cell), engine::cell_use::write);
        value_ = v;
    }
    /// As set_bits of a team does it: several lanes and teams may, without order between them.
    T set_bits(const T& bits)
    {
        engine::cell_access(number(engine::register_cell), engine::cell_use::update);
        return std::exchange(value_, value_ | bits);
    }
    /// As add of a team does it, likewise.
    T add(const T& value)
    {
        engine::cell_access(number(engine::register_cell), engine::cell_use::update);
        return std::exchange(value_, value_ + value);
    }
    u32 index() const { return number(engine::register_cell); }

private:
    T value_{};
};

template <class T> void label(const word<T>& w, const char* name) { engine::label_word(w.location(), name); }
inline void label(const chunk_word& w, const char* name) { engine::label_word(w.location(), name); }

/// A place that one role writes and another reads, again and again: the first read of each message must happen before the store
/// of the next one. That is how the model, whose loads never see later stores, finds an order missing that only keeps a load
/// before such a store. Later reads of the same message are polls, and free.
inline void reuse_needs_order(const chunk_word& w) { engine::reuse_needs_order(w.location()); }

template <class T> void label(const cell<T>& c, const char* name) { engine::label_cell(c.index(), name); }

/// Bugs that a test plants in the crew's barrier.
enum class crew_bug : u8 {
    none,
    no_order,         ///< it waits, but hands nothing over
    no_helpers_order, ///< that of the helpers likewise
    no_wait,          ///< every second one is left out
};
inline crew_bug planted_crew_bug = crew_bug::none;

template <u32 Lanes = 1, u32 Teams = 1, bool Aborts = false>
struct model_platform {
    static_assert(Lanes == 1 || (Lanes == 4 && Teams == 1));
    template <class T> using word = model::word<T>;
    template <class T> using cell = model::cell<T>;
    using chunk_word = model::chunk_word;
    static constexpr u32 worker_groups = 1;
    static constexpr u32 mailbox_depth = 2; ///< soon full, and read together
    static constexpr u32 wait_for_linker = 0;
    static constexpr u32 look_at_request = 1;
    static constexpr u32 look_at_rings = 2;
    static constexpr u32 look_around = 1;
    static constexpr u32 look_for_stop = Aborts ? 1 : 1u << 30; ///< its polls make the turns of waiting workers many

    template <class T> static T load(edge e, const word<T>& w, order o, scope s)
    {
        return unpack<T>(engine::atomic(engine::operation::load, w.location(), sizeof(T), {}, e, o, s));
    }
    template <class T> static void store(edge e, word<T>& w, std::type_identity_t<T> v, order o, scope s)
    {
        engine::atomic(engine::operation::store, w.location(), sizeof(T), pack(v), e, o, s);
    }
    template <class T> static T fetch_add(edge e, word<T>& w, std::type_identity_t<T> v, order o, scope s)
    {
        return unpack<T>(engine::atomic(engine::operation::add, w.location(), sizeof(T), pack(v), e, o, s));
    }
    template <class T> static void add(edge e, word<T>& w, std::type_identity_t<T> v, order o, scope s)
    {
        fetch_add(e, w, v, o, s);
    }
    static abi::chunk load(edge e, const chunk_word& c, order o, scope s)
    {
        return unpack<abi::chunk>(engine::atomic(engine::operation::load, c.location(), 16, {}, e, o, s));
    }
    static void store(edge e, chunk_word& c, const abi::chunk& v, order o, scope s)
    {
        engine::atomic(engine::operation::store, c.location(), 16, pack(v), e, o, s);
    }
    static void fence(edge e, order o, scope s) { engine::fence(e, o, s); }

    template <class T> static T get(const cell<T>& c) { return c.get(); }
    template <class T> static void set(cell<T>& c, std::type_identity_t<T> v) { c.set(v); }

    template <class T> static T* keep(T* address) { return address; }
    static u32 keep(u32 value) { return value; }
    static void pause(u32) { engine::pause(); }
    static u64 clock_ns() { return engine::clock_ns(); }

    struct team {
        static u32 rank() { return Teams == 1 ? engine::lane_rank() : 0; }
        static u32 size() { return Teams == 1 ? engine::lane_count() : 1; }
        static bool leader() { return rank() == 0; }
        static void sync()
        {
            if constexpr (Teams == 1) engine::barrier("sync");
        }

        template <class Do> static void each32(Do act)
        {
            for (u32 k = rank(); k < 32; k += size()) act(k);
        }
        template <class Pred> static u32 mask32(Pred pred)
        {
            u32 mine = 0;
            for (u32 k = rank(); k < 32; k += size()) mine |= static_cast<u32>(static_cast<bool>(pred(k))) << k;
            return reduce("mask32", mine, [](u32 a, u32 b) { return a | b; });
        }
        template <u32 N, class Load, class Pred> static void masks32(u32 (&masks)[N], Load load, Pred pred)
        {
            using item = decltype(load(u32{}, u32{}));
            item items[N][32];
            for (u32 n = 0; n < N; ++n)
                for (u32 k = rank(); k < 32; k += size()) items[n][k] = load(n, k);
            for (u32 n = 0; n < N; ++n) masks[n] = mask32([&](u32 k) { return pred(n, k, items[n][k]); });
        }
        template <class Pred, class Hit> static void each_hit(u32 mask, Pred pred, Hit hit)
        {
            for (; mask != 0; mask &= mask - 1)
                for (u32 k = rank(); k < 32; k += size())
                    if (pred(device::lowest_bit(mask), k)) hit(device::lowest_bit(mask), k);
            sync();
        }
        template <class Key, class Array> static void match32(u32 mask, Key key, Array& first)
        {
            u32 keys[32];
            for (u32 rest = mask; rest != 0; rest &= rest - 1) {
                const u32 k = device::lowest_bit(rest);
                keys[k] = reduce("match32", k % size() == rank() ? static_cast<u32>(key(k)) : 0u,
                                 [](u32 a, u32 b) { return a | b; });
                u32 other = device::lowest_bit(mask);
                while (keys[other] != keys[k]) other = device::lowest_bit(mask & (~u32{1} << other));
                if (k % size() == rank()) first.at(0, k) = other;
            }
        }
        template <class Array> static void sums_before(Array& values)
        {
            u32 sum = 0;
            for (u32 k = 0; k < 32; ++k) {
                const u32 own = from_lane(values, k);
                if (k % size() == rank()) values.at(0, k) = sum;
                sum += own;
            }
        }
        // Plain: fibers change places at atomics and collectives only.
        static u32 add(u32& word, u32 value) { return std::exchange(word, word + value); }
        static u32 set_bits(u32& word, u32 bits) { return std::exchange(word, word | bits); }
        static u32 add(cell<u32>& word, u32 value) { return word.add(value); }
        static u32 set_bits(cell<u32>& word, u32 bits) { return word.set_bits(bits); }
        static u32 clear_bits(u32& word, u32 bits) { return std::exchange(word, word & ~bits); }
        static void lower(u32& word, u32 value) { word = value < word ? value : word; }
        static bool claim(u32& word, u32 value) { return join(word, value); }
        static bool join(u32& word, u32 value)
        {
            if (word == 0) word = value;
            return word == value;
        }
        template <class Array> static u32 from_lane(Array& values, u32 k)
        {
            return reduce("from_lane", k % size() == rank() ? static_cast<u32>(values.at(0, k)) : 0u,
                          [](u32 a, u32 b) { return a | b; });
        }
        template <class Array> static void gather32(Array& values, Array& index, Array& out)
        {
            for (u32 j = 0; j < 32; ++j) {
                const u32 item = from_lane(values, j);
                for (u32 k = rank(); k < 32; k += size())
                    if (index.at(0, k) == j) out.at(0, k) = item;
            }
        }
        template <class T> static T broadcast(T v)
        {
            static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 256);
            if constexpr (Teams == 1) engine::broadcast(&v, sizeof v);
            return v;
        }
        static bool any(bool v)
        {
            return reduce("any", v, [](u32 a, u32 b) { return a | b; }) != 0;
        }
        static u32 reduce_min(u32 v)
        {
            return reduce("reduce_min", v, [](u32 a, u32 b) { return a < b ? a : b; });
        }
        static u32 reduce_add(u32 v)
        {
            return reduce("reduce_add", v, [](u32 a, u32 b) { return a + b; });
        }

    private:
        template <class Op> static u32 reduce(const char* what, u32 mine, Op op)
        {
            if (size() == 1) return mine;
            const u64* all = engine::gather(what, mine);
            u32 out = static_cast<u32>(all[0]);
            for (u32 i = 1; i < size(); ++i) out = op(out, static_cast<u32>(all[i]));
            return out;
        }
    };

    template <class T, u32 N> struct lane_array {
        T values[N][32];
        T& at(u32 n, u32 k) { return values[n][k]; }
    };

    struct crew {
        static constexpr u32 teams() { return Teams; }
        static u32 index() { return Teams == 1 ? 0 : engine::lane_rank(); }
        void sync()
        {
            if constexpr (Teams == 1) return;
            ++syncs_;
            if (planted_crew_bug == crew_bug::no_wait && syncs_ % 2 == 0) return;
            engine::barrier("crew", planted_crew_bug != crew_bug::no_order);
        }
        void sync_helpers()
        {
            if constexpr (Teams > 2) engine::barrier("helpers", planted_crew_bug != crew_bug::no_helpers_order, 1);
        }
        model_platform::team& team() { return team_; }

    private:
        model_platform::team team_;
        u32 syncs_ = 0;
    };

private:
    template <class T> static value pack(const T& v)
    {
        value bits{};
        std::memcpy(bits.data(), &v, sizeof v);
        return bits;
    }
    template <class T> static T unpack(const value& bits)
    {
        T out;
        std::memcpy(&out, bits.data(), sizeof out);
        return out;
    }
};

} // namespace slipstream::model
