// The list of synchronising edges: every atomic operation of the protocol names one of these.
//
// An edge R<n> -> A<n> is a release that some acquire pairs with; the headers that own the words say what becomes visible.
// The model platform weakens an operation by its edge at run time, so this list is also the list of mutations. A word that
// carries no other data (a counter whose value is the message) is marked with P<n>: relaxed at both ends, with the reason
// at the place of use.
#pragma once
#include <cstdint>

//       name             what the edge hands over
#define SLIPSTREAM_EDGES(X)                                                                                            \
    X(R0_ring_publish,    "submitter -> ingest: one 16-byte chunk of a message, and the host memory written before it") \
    X(A0_ring_publish,    "ingest polls the chunk")                                                                     \
    X(A0_ring_fence,      "ingest acquires once for all chunks of one poll")                                            \
    X(R1_ring_consumed,   "ingest -> submitter: ring slots may be overwritten")                                         \
    X(A1_ring_consumed,   "submitter reads how far the ring was consumed")                                              \
    X(R2_slot_freed,      "admission -> ingest: a window slot, its record and its pool blocks may be overwritten")      \
    X(A2_slot_freed,      "ingest takes a free window slot")                                                            \
    X(R2_slot_taken,      "ingest -> admission: the queue entry may be reused")                                         \
    X(A2_slot_taken,      "admission looks for room in the free queue")                                                 \
    X(R3_decoded,         "ingest -> admission: a window slot holds a whole decoded task")                              \
    X(A3_decoded,         "admission takes a decoded task")                                                             \
    X(R3_taken,           "admission -> ingest: the queue entry may be reused")                                         \
    X(A3_taken,           "ingest looks for room in the decoded queue")                                                 \
    X(R10_admitted,       "admission -> linker: a task and its row of predecessors; passes R3_decoded on"   )           \
    X(A10_admitted,       "linker takes an admitted task"   )                                                           \
    X(R10_linked,         "linker -> admission: the queue entry and its row may be reused"   )                          \
    X(A10_linked,         "admission looks for room in the admitted queue")                                             \
    X(R13_report,         "scheduler -> linker: what became of a task "                                                 \
                          "(a completed one's writes are acquired later, by the fence of the step)")                    \
    X(A13_report,         "linker takes a report")                                                                      \
    X(R13_taken,          "linker -> scheduler: the successors of all tasks reported so far were looked at")            \
    X(A13_taken,          "scheduler looks whether they were")                                                          \
    X(R14_ready,          "linker -> scheduler: a task that waits for nobody, or is staged; passes R10_admitted on")    \
    X(A14_ready,          "scheduler takes a ready task")                                                               \
    X(R14_taken,          "scheduler -> linker: the queue entry may be reused")                                         \
    X(A14_taken,          "linker looks for room in the ready queue")                                                   \
    X(R15_linked,         "linker -> scheduler: so many tasks are linked, and their records may be released to workers") \
    X(A15_linked,         "scheduler reads that count before its fence")                                                \
    X(R11_finished,       "notifier -> admission: nothing will be read of this slot any more" )                         \
    X(A11_finished,       "admission takes a finished slot")                                                            \
    X(R11_taken,          "admission -> notifier: the queue entry may be reused" )                                      \
    X(A11_taken,          "notifier looks for room in the finished queue" )                                             \
    X(R4A5_step_fence,     "scheduler, once a step: acquires the completions it saw, releases them and the records to workers")  \
    X(R4_mail,            "scheduler stores the mail chunk")                                                            \
    X(A4_mail,            "worker polls its mailbox")                                                                   \
    X(A4_mail_fence,      "worker acquires after the poll that succeeded")                                              \
    X(R5R12_fence,        "worker, once an answer: what its bodies wrote precedes its completion word "                 \
                          "and the slots' finished counts")                                                             \
    X(R5R12_failure_fence, "worker, when a block failed: the finished count precedes the completion word")               \
    X(R5_done,            "worker -> scheduler: completion word")                                                       \
    X(A5_done,            "scheduler polls the completion words")                                                       \
    X(R12_finished,       "worker -> worker, scheduler: one more block has run in this slot")                           \
    X(A12_finished,       "worker of a staged task polls the finished counts that it waits for, and other parts' clocks")   \
    X(A12_finished_fence, "it acquires after the poll that succeeded")                                                  \
    X(A24_finished,       "scheduler polls the finished counts of tasks that were mailed to all workers; "                \
                          "the step's fence comes after; and looks, after a failure, whether a stand-in's task has run")  \
    X(R6_retired,         "scheduler -> notifier: a retired slot; the completions acquired so far precede it")           \
    X(A6_retired,         "notifier takes a retired entry")                                                             \
    X(R6_notified,        "notifier -> scheduler: the queue entry may be reused")                                       \
    X(A6_notified,        "scheduler looks for room in the retired queue")                                              \
    X(R7_complete_fence,  "notifier -> host: the task's writes precede its completion bit")                             \
    X(R7_failure,         "notifier stores a failure record, before the fence")                                         \
    X(R7_complete,        "notifier stores a word of completion bits")                                                  \
    X(R7_low_water,       "notifier stores the low-water mark")                                                         \
    X(A7_complete,        "host reads a word of completion bits")                                                       \
    X(A7_failure,         "host reads the failure records of what it knows to be complete")                             \
    X(A7_low_water,       "host reads the low-water mark")                                                              \
    X(R8_command,         "service -> notifier: what was published before the command is visible after it")             \
    X(A8_command,         "notifier polls the command word")                                                            \
    X(R9_phase,           "one control role -> another: change of phase, with all queue entries before it")             \
    X(A9_phase,           "a control role reads the phase")                                                             \
    X(R16_stream_done,    "a CUDA stream's callback -> ingest: the stream's work precedes the tasks that joined it")      \
    X(A16_stream_done,    "ingest reads a join word while a gate asks for it")                                          \
    X(R17_stream_released, "service -> a CUDA stream that waits for a task: the task's writes precede the stream's next work") \
    X(R18_failures_read,  "host -> notifier: failure records were read, they may be overwritten")                       \
    X(A18_failures_read,  "notifier looks for room for a failure record")                                               \
    X(R19_message,        "scheduler -> another part's scheduler: a stand-in is ready, or its task complete; "          \
                          "the step's fence stands before it")                                                          \
    X(A19_message,        "it polls the channels; the step's fence comes after")                                         \
    X(R26_staging,        "linker -> another part's linker: what a stand-in of a task there waits for; the value is the message") \
    X(A26_staging,        "it polls those channels")                                                                     \
    X(R28_fences,         "scheduler -> workers of other parts: how many step fences it has made, behind each of them; "  \
                          "A12_finished polls it")                                                                       \
    X(P15_promised,       "scheduler -> linker: the number of the fence that covers all it was told of: ordered by R13_report, " \
                          "or R10_admitted")                                                                             \
    X(R27_broken_fence,   "linker, before it counts a task's blocks as failed, since none of them will run: that task's mark") \
    X(R20_arrived,        "scheduler -> linker: a stand-in of a task is ready")                                          \
    X(A20_arrived,        "linker takes it")                                                                             \
    X(R20_taken,          "linker -> scheduler: the queue entry may be reused")                                          \
    X(A20_room,           "scheduler looks for room in the arrived queue")                                               \
    X(R21_bypass_fence,   "ingest, before it mails a task itself: the task's record, and what it acquired for it")       \
    X(R21_bypass_mail,    "ingest stores that mail, to worker 0")                                                        \
    X(R23_bypassed,       "ingest -> scheduler: mails were sent to worker 0, of the tasks in these slots")               \
    X(A23_bypassed,       "scheduler looks for them before it mails")                                                    \
    X(R22_early_fence,    "worker 0: what that task's body wrote, and whatever came before it, precedes the early mark") \
    X(R22_early_mark,     "worker 0 -> host: all submissions of the ring before the mark are complete")                  \
    X(A22_early_mark,     "host reads it")                                                                               \
    X(R25_declined,       "worker 0 empties the place of a blank that it declines")                                      \
    X(R25_declined_fence, "and then says so: that place may be written again")                                           \
    X(A25_declined_fence, "ingest, when it has seen that")                                                               \
    X(P0_ticket,          "workers draw block numbers: the value is the message")                                       \
    X(P1_stop,            "park or abort flag for ticket loops: only a hint to stop early")                             \
    X(P2_heartbeat,       "counter for the watchdog: nothing is read through it")                                       \
    X(P3_recorder,        "flight recorder: one 16-byte record, self-contained")                                        \
    X(P4_status,          "failure code of a body, and the mark beside a finished count: "                              \
                          "ordered by R5R12_fence of the same worker")                                                  \
    X(P5_self,            "a word read back by its only writer, or by who has it while that one is away")                     \
    X(P6_finished_reset,  "linker sets a finished count back that nobody waits for: "                                   \
                          "ordered for its next readers by R4A5_step_fence")                                            \
    X(P7_crossings,       "linker counts tasks that cross, and stand-ins: ordered by R14_ready for whom the scheduler is to mail") \
    X(P8_answered,        "ingest looks whether worker 0 has answered: the next task follows on that worker, in its order") \
    X(P9_watch,           "ingest and worker 0 agree by additions to one word who has the ring: the value is the message") \
    X(P10_blank,          "where the task of a blank will be: ordered by R21_bypass_fence and A4_mail. Of one that was "     \
                          "withdrawn, whose slot may be a later one's, it is read, too, and not used")                             \
    X(P11_place,          "each block of a launch says which SM it runs on: the value is the message")                    \
    X(P12_claim,          "whoever adds to it first settles what becomes of a launch: the value is the message")           \
    X(P13_outcome,        "and says so to all blocks: the value is the message, kernels end before anything else is read by it") \
    X(P14_void,           "and to the host, of a launch that is void: the value alone is looked at")

namespace slipstream::device {

enum class edge : std::uint8_t {
#define SLIPSTREAM_EDGE_ENUM(name, text) name,
    SLIPSTREAM_EDGES(SLIPSTREAM_EDGE_ENUM)
#undef SLIPSTREAM_EDGE_ENUM
    count
};

constexpr const char* edge_name(edge e)
{
    switch (e) {
#define SLIPSTREAM_EDGE_NAME(name, text)                                                                               \
    case edge::name:                                                                                                   \
        return #name;
        SLIPSTREAM_EDGES(SLIPSTREAM_EDGE_NAME)
#undef SLIPSTREAM_EDGE_NAME
    default:
        return "?";
    }
}

} // namespace slipstream::device
