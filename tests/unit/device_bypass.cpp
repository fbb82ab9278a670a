// The bypass (device/bypass.hpp): which messages ingest mails itself, and how the scheduler takes these mails over.
#include "ingest_test.hpp"

using namespace slipstream;
using namespace slipstream::tests;
using device::edge;
using device::mail;
using device::order;
using device::scope;

namespace {

struct message {
    u32 blocks = 1;
    u32 flags = 0;
    u32 ranges = 1;
    int after = -1; ///< position of a task of this ring
};

struct bypass_test : ingest_test {
    explicit bypass_test(bool on = true)
        : ingest_test({.window = 64, .workers = 2, .rings = 2, .bypass = on}, {describe_task<two_words>()})
    {
    }
    void send(const message& what = {}, u32 ring = 0)
    {
        auto& w = writers[ring];
        const u32 entries = what.ranges + (what.after >= 0);
        (void)w.put(abi::message_header{what.blocks, 0, what.flags, entries, 2, 1 + entries}.encode(), never);
        if (what.after >= 0)
            (void)w.put({{abi::encode_first(abi::entry_kind::after, access_mode::none, ring), static_cast<u32>(what.after), 0, 0}},
                  never);
        for (u32 i = 0; i < what.ranges; ++i)
            (void)w.put({{abi::encode_first(abi::entry_kind::range, access_mode::read, 0), 0x1000 + 64 * i, 8, 0}}, never);
        (void)w.put({{71, 72, 0, 0}}, never);
        REQUIRE(w.finish(never));
    }
    bool sent(u32 slot)
    {
        const bool bypassed = P::get(engine.s.heads[slot]).bypassed();
        CHECK(P::get(engine.s.outstanding[slot]) == (bypassed ? 2u : P::get(engine.s.heads[slot]).blocks));
        return bypassed;
    }
    void answer(u32 number, u32 bits = 0)
    {
        P::store(edge::R5_done, engine.m.done[0], device::done_word::make(number, 0, bits), order::relaxed, scope::device);
    }
    void give_back(u32 slot) { freed.push(engine.team, slot); }
};

} // namespace

TEST_CASE("a task that comes alone is mailed to worker 0, decoded and with all members", "[device][bypass]")
{
    bypass_test t;
    P::set(*t.engine.s.first_sent, 40u);
    t.send({}, 1);
    const u32 slot = t.take();
    REQUIRE(t.sent(slot));
    const mail letter = t.letter(41);
    CHECK((letter.bypassed() && letter.slot() == slot && letter.type() == 0 && letter.block() == 0 && !letter.staged()));
    CHECK((letter.tag == device::tag_of(41) && letter.ring() == 1 && letter.task() == device::identity_of(u64{1} << 56)));
    const auto& record = t.engine.m.records[slot];
    CHECK((P::get(record.blocks) == 1 && P::get(record.position) == 0));
    two_words task;
    std::memcpy(&task, record.words, sizeof task);
    CHECK((reinterpret_cast<u64>(task.x.data()) == 0x1000 && task.a == 71 && task.b == 72));
    REQUIRE(t.engine.entries_of(slot).size() == 1); // resolved: admission has nothing to write where a body may read
    CHECK(t.engine.entries_of(slot)[0].begin() == 0x1000);
    CHECK(P::load(edge::A23_bypassed, *t.engine.s.bypass_number, order::acquire, scope::block) == 41);
    CHECK(P::get(t.engine.s.bypass_slots[41 % P::mailbox_depth]) == slot);
    bypass_test off(false);
    off.send();
    CHECK_FALSE(off.sent(off.take()));
}

TEST_CASE("the next one is mailed behind those that were answered, and by the scheduler otherwise", "[device][bypass]")
{
    SECTION("answered")
    {
        bypass_test t;
        for (u32 number = 1; number < device::bypassed_max<P>; ++number) { // their slots are not given back yet
            t.send();
            CHECK(t.sent(t.take()));
            CHECK(t.letter(number).tag == device::tag_of(number));
            t.answer(number);
        }
        t.send();
        CHECK(t.sent(t.take()));
        t.answer(device::bypassed_max<P>);
        t.send(); // there is no place left to note its slot
        CHECK_FALSE(t.sent(t.take()));
    }
    SECTION("not answered, or with a failure")
    {
        for (const bool failed : {false, true}) {
            bypass_test t;
            t.send();
            const u32 first = t.take();
            CHECK(t.sent(first));
            if (failed) t.answer(1, device::done_word::failed_bit);
            t.send();
            const u32 second = t.take();
            CHECK_FALSE(t.sent(second));
            if (!failed) t.answer(1);
            t.send(); // what is in flight was not all bypassed
            const u32 third = t.take();
            CHECK_FALSE(t.sent(third));
            for (const u32 slot : {first, second, third}) t.give_back(slot);
            P::set(*t.engine.s.first_sent, 3u);
            if (failed) t.engine.s.counters[device::failures_seen] = 1;
            t.send();
            CHECK(t.sent(t.take()) == !failed);
            if (!failed) CHECK(t.letter(4).tag == device::tag_of(4));
        }
    }
    SECTION("something else is in flight, of another ring")
    {
        bypass_test t;
        t.send({.blocks = 2}, 1);
        const u32 other = t.take();
        CHECK_FALSE(t.sent(other));
        t.send();
        CHECK_FALSE(t.sent(t.take()));
    }
}

TEST_CASE("what ingest does not mail", "[device][bypass]")
{
    for (const message& what : {message{.blocks = 2}, message{.flags = abi::flag_whole_memory},
                                message{.flags = abi::flag_clear_failure}, message{.ranges = 3}, message{.after = 0}}) {
        bypass_test t;
        if (what.after >= 0) { // a task that is over
            t.send();
            t.give_back(t.take());
        }
        t.send(what);
        CHECK_FALSE(t.sent(t.take()));
    }
    bypass_test t;
    t.send({.flags = abi::flag_no_access});
    CHECK(t.sent(t.take()));
    bypass_test two; // together
    two.send();
    two.send();
    for (u32 i = 0; i < 8; ++i) two.ingest.step(two.engine.team);
    REQUIRE(two.decoded.available(two.engine.team, 2) == 2);
    for (u32 i = 0; i < 2; ++i) CHECK_FALSE(two.sent(two.decoded.pop()));
}

namespace {

/// A scheduler with tasks that ingest has mailed.
struct adoption_test : scheduler_test {
    adoption_test() : scheduler_test({.window = 64, .workers = 2, .bypass = true}) {}
    void mail_it(u32 slot, u32 number)
    {
        P::set(engine.s.outstanding[slot], 2u);
        P::set(engine.s.bypass_slots[number % device::bypassed_max<P>], slot);
        P::store(edge::R23_bypassed, *engine.s.bypass_number, number, order::release, scope::block);
    }
    /// It comes to its turn.
    void come(u32 slot)
    {
        const u32 due = P::get(engine.s.outstanding[slot]);
        put(slot);
        device::task_head head = P::get(engine.s.heads[slot]);
        head.entries_and_flags |= device::task_head::bypass_bit;
        P::set(engine.s.heads[slot], head);
        P::set(engine.s.outstanding[slot], due);
    }
    void answer(u32 worker, u32 number)
    {
        P::store(edge::R5_done, engine.m.done[worker], device::done_word::make(number, 0, 0), order::relaxed, scope::device);
    }
    bool was_mailed(u32 worker, u32 number)
    {
        return mail::decode(P::load(edge::A4_mail, engine.m.mailboxes[worker].mail[number % P::mailbox_depth], order::relaxed,
                                    scope::device)).tag == device::tag_of(number);
    }
};

} // namespace

TEST_CASE("a bypassed task is complete after its answer and its turn, and is not mailed again", "[device][bypass]")
{
    for (const bool answered_first : {false, true}) {
        adoption_test t;
        t.start();
        t.mail_it(5, 1);
        if (answered_first) t.answer(0, 1);
        t.settle();
        CHECK(t.take_retired() == 0);
        t.come(5);
        t.settle();
        if (!answered_first) {
            CHECK(t.take_retired() == 0);
            t.answer(0, 1);
            t.settle();
        }
        CHECK(t.take_retired() == 1);
        CHECK_FALSE(t.was_mailed(0, 1));
        CHECK(P::get(*t.engine.s.first_sent) == 1);
    }
}

TEST_CASE("answers to mails that are not adopted wait; the scheduler's own come behind ingest's", "[device][bypass]")
{
    adoption_test t;
    t.start();
    t.mail_it(5, 1);
    t.come(5);
    t.settle(); // adopted, not answered
    t.mail_it(6, 2); // answered, before the scheduler has heard of it
    t.answer(0, 2);
    t.settle();
    CHECK(t.take_retired() == 1);
    t.come(6);
    for (const u32 slot : {7u, 8u}) t.put(slot);
    t.settle();
    CHECK(t.take_retired() == 1);
    // Both workers are idle: worker 0 gets number 3.
    CHECK((t.was_mailed(0, 3) && !t.was_mailed(0, 4) && t.was_mailed(1, 1)));
    t.answer(0, 3);
    t.answer(1, 1);
    t.settle();
    CHECK(t.take_retired() == 2);
    CHECK(P::get(*t.engine.s.first_sent) == 3);
    CHECK(t.scheduler->workers_idle(t.engine.team));
    // The next launch's ingest counts on behind the mail that dismissed the worker.
    t.scheduler->dismiss_workers(t.engine.team);
    CHECK(P::get(*t.engine.s.first_sent) == 4);
}

TEST_CASE("more bypassed tasks than a mailbox has places are adopted in parts, and nothing is mailed before", "[device][bypass]")
{
    constexpr u32 count = device::bypassed_max<P> - 1;
    adoption_test t;
    t.start();
    for (u32 k = 1; k <= count; ++k) t.mail_it(k, k);
    for (u32 slot = 1; slot <= count; ++slot) t.come(slot);
    t.put(count + 1);
    for (u32 i = 0; i < 4; ++i) { // it does not come to rest before worker 0 has answered
        t.linker->step(t.engine.team);
        t.scheduler->step(t.engine.team);
    }
    CHECK(t.take_retired() == 0);
    CHECK_FALSE((t.was_mailed(0, count + 1) || t.was_mailed(1, 1)));
    t.answer(0, count); // all of them
    t.settle();
    CHECK(t.take_retired() == count);
    CHECK(t.engine.s.counters[device::failures_seen] == 0); // none of those long ago is taken for a skipped one
    CHECK((t.was_mailed(0, count + 1) != t.was_mailed(1, 1)));
}

TEST_CASE("two answers of bypassed tasks, the turns of which come later, and in another launch", "[device][bypass]")
{
    adoption_test t;
    t.start();
    t.mail_it(5, 1);
    t.mail_it(6, 2);
    t.answer(0, 2);
    t.scheduler->stop_dispatch();
    t.scheduler->adopt(t.engine.team);
    t.settle();
    CHECK(t.scheduler->workers_idle(t.engine.team));
    CHECK(t.take_retired() == 0);
    t.start();
    t.come(5);
    t.come(6);
    t.settle();
    CHECK(t.take_retired() == 2);
}
