// The watch (device/watch.hpp): worker 0 takes tasks from the ring itself while they come one by one, and ingest takes them in
// behind it.
#include "ingest_test.hpp"

using namespace slipstream;
using namespace slipstream::tests;
using device::edge;
using device::mail;
using device::order;
using device::scope;
using device::watch_word;

namespace {

struct two_accesses {
    in<u32> x;
    out<u32> y;
    u32 a;
    template <class B> void operator()(B&) const {}
};

/// Its message fills a slot: two chunks of entries, one of scalars.
struct four_accesses {
    in<u32> x;
    in2d<u32> tile;
    u32 a, b;
    in<u32> z;
    out<u32> y;
    template <class B> void operator()(B&) const {}
};

struct watch_test : ingest_test {
    explicit watch_test(u32 window_used = 0)
        : ingest_test({.window_used = window_used, .workers = 2, .rings = 2, .bypass = true, .watch_after = 2},
                      {describe_task<two_words>(), describe_task<two_accesses>(), describe_task<four_accesses>()}),
          worker(engine.m, 0, 0)
    {
        for (u32 h = 0; h < 4; ++h) engine.handles[h] = {0x8000 + 256 * h, 64, 0, 0, 0};
    }
    void send(u32 ring = 0, u32 blocks = 1, u32 a = 71)
    {
        auto& w = writers[ring];
        REQUIRE(w.put(abi::message_header{blocks, 0, 0, 1, 2, 2}.encode(), never));
        REQUIRE(w.put({{abi::encode_first(abi::entry_kind::range, access_mode::read, 0), 0x1000, 8, 0}}, never));
        REQUIRE(w.put({{a, 72, 0, 0}}, never));
        REQUIRE(w.finish(never));
    }
    void send_by_handles(u32 first, u32 second)
    {
        auto& w = writers[0];
        REQUIRE(w.put(abi::message_header{1, 1, 0, 2, 1, 2}.encode(), never));
        const u32 in = abi::encode_handle(first, access_mode::read), out = abi::encode_handle(second, access_mode::write);
        REQUIRE(w.put({{in, out, 0, 0}}, never));
        REQUIRE(w.put({{73, 0, 0, 0}}, never));
        REQUIRE(w.finish(never));
    }
    /// Handles 3, 2 (a tile), 1 in one chunk and 0, or a raw range, in the next.
    void send_four(bool raw)
    {
        auto& w = writers[0];
        const auto handle = [](u32 h, access_mode mode) { return abi::encode_handle(h, mode); };
        REQUIRE(w.put(abi::message_header{1, 2, 0, 4, 2, 3}.encode(), never));
        REQUIRE(w.put({{handle(3, access_mode::read), handle(2, access_mode::read), handle(1, access_mode::read), 0}}, never));
        if (raw) REQUIRE(w.put({{abi::encode_first(abi::entry_kind::range, access_mode::write, 0), 0x1000, 8, 0}}, never));
        else REQUIRE(w.put({{handle(0, access_mode::write), 0, 0, 0}}, never));
        REQUIRE(w.put({{74, 75, 0, 0}}, never));
        REQUIRE(w.finish(never));
    }
    void steps(bool may_watch = true)
    {
        for (u32 i = 0; i < 8; ++i) ingest.step(engine.team, may_watch);
    }
    /// Two tasks come alone and are run: ingest mails blanks.
    void begin()
    {
        for (u32 number = 1; number <= 2; ++number) {
            send();
            const u32 slot = take();
            const mail task = worker.wait();
            REQUIRE((task.tag == device::tag_of(number) && task.slot() == slot));
            worker.answer(task);
        }
        steps();
        REQUIRE(ingest.watches());
    }
    void abort() { let_waits_end(engine); }
    u32 free_slots() const { return *engine.s.free_slot_count; }

    test_port worker;
};

constexpr u32 blanks = device::watch_tables<P>::blanks_max;

} // namespace

TEST_CASE("a watch that ends takes in all that worker 0 has taken, in a window of 16 where no slot comes back", "[device][watch]")
{
    watch_test t(16); // of which the two first tasks have two
    t.begin();
    const auto run = [&](u32 count) {
        for (u32 i = 0; i < count; ++i) {
            t.send();
            t.worker.answer(t.worker.wait());
        }
    };
    run(6);
    t.steps();
    run(6);
    t.steps();
    t.abort(); // who waits longer leaves
    u32 more = 0;
    for (bool leaves = false; !leaves; more += !leaves) { // as far as there are blanks
        t.send();
        const mail task = t.worker.wait();
        leaves = task.leaves();
        if (!leaves) t.worker.answer(task);
    }
    t.steps(false);
    CHECK_FALSE(t.ingest.watches());
    CHECK(more <= 2);
}

TEST_CASE("an abort ends a worker whose next mail is a blank that was withdrawn and will never be emptied", "[device][watch]")
{
    watch_test t;
    t.begin();
    const auto& book = *t.engine.s.watch;
    P::add(edge::P9_watch, *t.engine.m.watch, watch_word::upper_step(book.withdrawn, book.posted), order::relaxed, scope::device);
    t.abort();
    CHECK(t.worker.wait().leaves());
}

TEST_CASE("behind two tasks that came alone worker 0 gets blanks, and takes the next one from the ring", "[device][watch]")
{
    watch_test t;
    t.begin();
    const u32 free = t.free_slots();
    for (u32 number = 3; number < 3 + blanks; ++number) {
        const mail blank = t.letter(number);
        CHECK((blank.blank() && blank.tag == device::tag_of(number) && blank.task() == device::identity_of(number - 1)));
    }
    CHECK_FALSE(t.letter(3 + blanks).blank());
    t.send(0, 1, 99);
    const u32 slot = t.letter(3).slot();
    const mail task = t.worker.wait();
    CHECK((task.bypassed() && !task.blank() && !task.staged() && task.slot() == slot && task.type() == 0 && task.block() == 0));
    two_words words;
    std::memcpy(&words, t.engine.m.records[slot].words, sizeof words);
    CHECK((reinterpret_cast<u64>(words.x.data()) == 0x1000 && words.a == 99 && words.b == 72));
    CHECK(P::get(t.engine.m.records[slot].position) == 2);
    // A failure's code stays when ingest takes it in.
    t.worker.fail(t.engine.m.records[slot], 9);
    CHECK(t.take() == slot);
    CHECK(P::load(edge::P4_status, t.engine.m.records[slot].status, order::relaxed, scope::device) == 9);
    CHECK((P::get(t.engine.s.heads[slot]).bypassed() && P::get(t.engine.s.outstanding[slot]) == 2));
    CHECK(P::get(t.engine.s.task_id[slot]) == 2);
    CHECK(t.engine.entries_of(slot).size() == 1);
    CHECK(P::load(edge::A23_bypassed, *t.engine.s.bypass_number, order::acquire, scope::block) == 3);
    CHECK(P::get(t.engine.s.bypass_slots[3 % P::mailbox_depth]) == slot);
    CHECK(t.letter(3 + blanks).blank()); // there are as many again
    CHECK(t.free_slots() == free - 1);
    // And nothing more goes this way: the next blank is declined.
    t.worker.answer(task);
    t.send();
    t.abort();
    CHECK(t.worker.wait().leaves());
    const u32 next = t.take();
    CHECK_FALSE(P::get(t.engine.s.heads[next]).bypassed());
    CHECK_FALSE(t.ingest.watches());
}

TEST_CASE("a worker takes several while ingest is busy; they come in together, each with its blank's slot and number",
          "[device][watch]")
{
    watch_test t;
    t.begin();
    constexpr u32 several = 3;
    u32 slots[several];
    for (u32 i = 0; i < several; ++i) {
        t.send(0, 1, 80 + i);
        const mail task = t.worker.wait();
        CHECK(task.tag == device::tag_of(3 + i));
        slots[i] = task.slot();
        t.worker.answer(task);
    }
    t.steps();
    REQUIRE(t.decoded.available(t.engine.team, several) == several);
    for (u32 i = 0; i < several; ++i) {
        const u32 slot = t.decoded.pop();
        CHECK((slot == slots[i] && P::get(t.engine.s.task_id[slot]) == 2 + i && P::get(t.engine.s.heads[slot]).bypassed()));
        CHECK(P::get(t.engine.s.bypass_slots[(3 + i) % P::mailbox_depth]) == slot);
    }
    CHECK(P::load(edge::A23_bypassed, *t.engine.s.bypass_number, order::acquire, scope::block) == 2 + several);
    for (u32 number = 3 + several; number < 3 + several + blanks; ++number) CHECK(t.letter(number).blank());
}

TEST_CASE("worker 0 puts together what ingest would: several entries a chunk, a tile, a raw range behind handles, scalars between",
          "[device][watch]")
{
    for (const bool raw : {false, true}) {
        watch_test t;
        t.engine.handles[2] = {0x8200, 16, 4, 64, 0};
        t.begin();
        t.send_four(raw); // declined: its handles are met now
        const u32 slot = t.take();
        const mail mailed = t.worker.wait();
        REQUIRE((mailed.slot() == slot && mailed.bypassed()));
        four_accesses by_ingest;
        std::memcpy(&by_ingest, t.engine.m.records[slot].words, sizeof by_ingest);
        t.worker.answer(mailed);
        t.steps();
        t.send_four(raw);
        const mail taken = t.worker.wait();
        REQUIRE((taken.type() == 2 && taken.bypassed() && taken.tag == device::tag_of(4)));
        four_accesses words;
        std::memcpy(&words, t.engine.m.records[taken.slot()].words, sizeof words);
        const auto at = [](const auto& access) { return reinterpret_cast<u64>(access.data()); };
        CHECK((at(words.x) == 0x8300 && words.x.bytes() == 64 && words.x.handle_plus_one() == 4));
        CHECK((at(words.tile) == 0x8200 && words.tile.row_bytes() == 16 && words.tile.rows() == 4 && words.tile.pitch() == 64));
        CHECK((at(words.z) == 0x8100 && words.z.handle_plus_one() == 2));
        CHECK((at(words.y) == (raw ? 0x1000 : 0x8000) && words.y.bytes() == (raw ? 8 : 64)));
        CHECK(words.y.handle_plus_one() == (raw ? 0 : 1));
        CHECK((words.a == 74 && words.b == 75));
        CHECK(std::memcmp(&words, &by_ingest, sizeof words) == 0);
    }
}

TEST_CASE("each task has its own struct, whether the message is like the one before or not", "[device][watch]")
{
    enum class message { range, other_range, handles, other_handles, four, four_raw };
    using enum message;
    watch_test t;
    t.begin();
    u32 watched = 0;
    // Each kind of message behind each other one, and behind its own.
    std::vector<message> messages;
    for (const message a : {range, handles, four, four_raw})
        for (const message b : {range, other_range, handles, other_handles, four, four_raw})
            messages.insert(messages.end(), {a, b});
    for (std::size_t i = 0; i < messages.size(); ++i) {
        CAPTURE(i);
        const message kind = messages[i];
        const bool raw = kind == four_raw;
        const u64 before = t.engine.s.bus[device::tasks_bypassed];
        if (kind == range || kind == other_range) t.send(0, 1, kind == range ? 71 : 1u << 31 | 72);
        else if (kind == handles) t.send_by_handles(0, 3);
        else if (kind == other_handles) t.send_by_handles(2, 1);
        else t.send_four(raw);
        const bool takes = i >= 12; // by then it has met all handles; before, what it declines comes by ingest
        if (takes) REQUIRE(t.ingest.watches()); // else nobody would answer here
        else t.steps();
        const mail task = t.worker.wait();
        REQUIRE((!task.leaves() && task.bypassed()));
        watched += static_cast<u32>(takes && t.engine.s.bus[device::tasks_bypassed] == before);
        const auto& words = t.engine.m.records[task.slot()].words;
        const auto at = [](const auto& access) { return reinterpret_cast<u64>(access.data()); };
        if (kind == range || kind == other_range) {
            two_words got;
            std::memcpy(&got, words, sizeof got);
            CHECK((task.type() == 0 && at(got.x) == 0x1000 && got.x.bytes() == 8 && got.x.handle_plus_one() == 0));
            CHECK((got.a == (kind == range ? 71 : 1u << 31 | 72) && got.b == 72));
        } else if (kind == handles || kind == other_handles) {
            two_accesses got;
            std::memcpy(&got, words, sizeof got);
            CHECK((task.type() == 1 && at(got.x) == (kind == handles ? 0x8000 : 0x8200)));
            CHECK((at(got.y) == (kind == handles ? 0x8300 : 0x8100) && got.a == 73));
        } else {
            four_accesses got;
            std::memcpy(&got, words, sizeof got);
            CHECK((task.type() == 2 && at(got.x) == 0x8300 && at(got.z) == 0x8100 && at(got.y) == (raw ? 0x1000 : 0x8000)));
            CHECK((got.a == 74 && got.b == 75));
        }
        t.worker.answer(task);
        t.freed.push(t.engine.team, static_cast<u16>(t.take()));
        t.steps();
    }
    CHECK(watched == messages.size() - 12);
}

TEST_CASE("worker 0 reads further blanks while it looks at the ring for the task of the last one that it knows", "[device][watch]")
{
    watch_test t;
    t.begin();
    u32 number = 2;
    const auto next = [&] {
        t.send();
        const mail task = t.worker.wait();
        REQUIRE(task.tag == device::tag_of(++number));
        return task;
    };
    for (u32 i = 0; i + 1 < blanks; ++i) { // all but one of those that it has read
        t.worker.answer(next());
        t.take();
        t.steps();
    }
    REQUIRE(t.letter(number + 2).blank());
    const mail last = next();
    SECTION("and does not look for them again")
    {
        P::store(edge::R21_bypass_mail, t.engine.m.mailboxes[0].mail[(number + 1) % P::mailbox_depth], abi::chunk{}, order::relaxed,
                 scope::device);
        t.worker.answer(last);
        t.take();
        t.worker.answer(next());
    }
    SECTION("and forgets them when they are withdrawn")
    {
        t.worker.answer(last);
        t.take();
        t.steps();
        t.send(1);
        const u32 slot = t.take();
        CHECK_FALSE(t.ingest.watches());
        const mail mailed = t.worker.wait();
        CHECK((mailed.slot() == slot && mailed.tag == device::tag_of(number + 1) && mailed.ring() == 1));
    }
}

TEST_CASE("what worker 0 declines goes the old way, with the number of the blank, which leaves nothing behind", "[device][watch]")
{
    enum class what { together, wide, unmet_handle };
    for (const what declined : {what::together, what::wide, what::unmet_handle}) {
        watch_test t;
        t.begin();
        const u32 free = t.free_slots() + blanks;
        if (declined == what::unmet_handle) t.send_by_handles(0, 3);
        else t.send(0, declined == what::wide ? 2 : 1);
        if (declined == what::together) t.send();
        t.abort();
        CHECK(t.worker.wait().leaves()); // it has declined
        CHECK(t.letter(3).tag == 0);
        t.steps();
        const u32 tasks = declined == what::together ? 2 : 1;
        REQUIRE(t.decoded.available(t.engine.team, tasks) == tasks);
        const u32 slot = t.decoded.pop();
        const bool alone = declined == what::unmet_handle;
        CHECK(P::get(t.engine.s.heads[slot]).bypassed() == alone);
        const mail next = t.letter(3);
        CHECK((alone ? next.tag == device::tag_of(3) && !next.blank() && next.slot() == slot : next.tag == 0));
        for (u32 i = 1; i < blanks; ++i) CHECK(t.letter(3 + i).tag == 0);
        CHECK_FALSE(t.ingest.watches());
        CHECK(t.free_slots() == free - tasks);
        if (!alone) continue;
        const mail task = t.worker.wait();
        CHECK((task.slot() == slot && task.type() == 1));
        t.worker.answer(task);
        t.decoded.release(t.engine.team);
        t.steps(); // the streak goes on, and the handles are met
        REQUIRE(t.letter(4).blank());
        t.send_by_handles(2, 1);
        const mail taken = t.worker.wait();
        CHECK((taken.tag == device::tag_of(4) && taken.type() == 1));
        two_accesses words;
        std::memcpy(&words, t.engine.m.records[taken.slot()].words, sizeof words);
        CHECK(reinterpret_cast<u64>(words.x.data()) == 0x8200);
        CHECK((reinterpret_cast<u64>(words.y.data()) == 0x8100 && words.a == 73));
    }
}

TEST_CASE("a message of another ring, a drain or a park ends the watch; a task that was taken comes in first", "[device][watch]")
{
    SECTION("nobody has come to the blank")
    {
        watch_test t;
        t.begin();
        const u32 free = t.free_slots() + blanks;
        t.send(1);
        const u32 slot = t.take();
        CHECK(P::get(t.engine.s.task_id[slot]) == u64{1} << 56);
        CHECK_FALSE(t.ingest.watches());
        CHECK((t.letter(3).tag == device::tag_of(3) && t.letter(3).slot() == slot && t.letter(4).tag == 0));
        CHECK(t.free_slots() == free - 1);
        CHECK(t.worker.wait().slot() == slot);
    }
    SECTION("a task was taken")
    {
        watch_test t;
        t.begin();
        t.send();
        const mail task = t.worker.wait();
        t.send(1);
        t.steps();
        REQUIRE(t.decoded.available(t.engine.team, 2) == 2);
        CHECK(t.decoded.pop() == task.slot());
        CHECK(P::get(t.engine.s.task_id[t.decoded.pop()]) == u64{1} << 56);
    }
    SECTION("worker 0 runs a task, and the next one waits in the ring")
    {
        watch_test t;
        t.begin();
        t.send();
        const mail task = t.worker.wait();
        const u32 slot = t.take();
        CHECK(slot == task.slot());
        t.send();
        const u32 next = t.take(); // not worker 0's, who is busy
        CHECK_FALSE(P::get(t.engine.s.heads[next]).bypassed());
        t.worker.answer(task);
        t.abort();
        CHECK(t.worker.wait().leaves());
    }
    SECTION("a drain")
    {
        watch_test t;
        t.begin();
        t.steps(false);
        CHECK_FALSE(t.ingest.watches());
        CHECK(t.ingest.rings_empty());
    }
}

TEST_CASE("ids of blanks wrap, and one that was withdrawn long ago looks like no later one", "[device][watch]")
{
    const auto word = [](u32 withdrawn, u32 lower) { return watch_word{static_cast<u64>(withdrawn) << 32 | lower}; };
    CHECK_FALSE(word(5, 0).valid(5));
    CHECK_FALSE(word(5, 0).valid(3));
    CHECK(word(5, 0).valid(6));
    CHECK(word(watch_word::ids - 1, 0).valid(0));
    CHECK_FALSE(word(0, 0).valid(watch_word::ids - 1));
    CHECK((watch_word::lower_of(watch_word::ids - 1, watch_word::declined) >> 25) == 0);
    watch_test t;
    // As if as many blanks had been taken as there are ids, and none withdrawn since a quarter of them.
    auto& book = *t.engine.s.watch;
    book.posted = book.known = watch_word::ids - 2;
    book.withdrawn = watch_word::ids / 2;
    P::store(edge::P9_watch, *t.engine.m.watch,
             static_cast<u64>(book.withdrawn) << 32 | watch_word::lower_of(watch_word::ids - 2, watch_word::taken), order::relaxed,
             scope::device);
    test_port worker(t.engine.m, 0, 0); // of the next launch
    for (u32 number = 1; number <= 2; ++number) {
        t.send();
        t.take();
        worker.answer(worker.wait());
    }
    t.steps();
    CHECK(book.withdrawn == watch_word::ids - 2);
    for (u32 number = 3; number <= 6; ++number) {
        t.send();
        const mail task = worker.wait();
        CHECK(task.tag == device::tag_of(number));
        CHECK(t.take() == task.slot());
        worker.answer(task);
    }
    const auto now = P::load(edge::P9_watch, *t.engine.m.watch, order::relaxed, scope::device);
    CHECK(watch_word{now}.withdrawn() == watch_word::ids - 2);
    CHECK(watch_word{now}.lower() == watch_word::lower_of(2, watch_word::taken));
}
