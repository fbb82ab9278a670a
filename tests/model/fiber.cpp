#include "tests/model/fiber.hpp"
#include <cstdint>
#include <cstdlib>
#include <new>
#include <sys/mman.h>
#if !defined(__x86_64__)
#include <ucontext.h>
#endif

// x86-64: a switch of a few nanoseconds (ucontext's makes two system calls, and an exploration makes millions of switches).
// Elsewhere: ucontext.
#if defined(__x86_64__)
extern "C" void slipstream_model_switch(void** save, void* load);
asm(R"(
.text
.globl slipstream_model_switch
.type slipstream_model_switch, @function
slipstream_model_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
.size slipstream_model_switch, .-slipstream_model_switch
)");
#endif

namespace slipstream::model {

namespace {
thread_local fiber* starting = nullptr;
}

fiber::fiber()
    : stack_(mmap(nullptr, stack_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0))
{
    if (stack_ == MAP_FAILED) throw std::bad_alloc();
#if !defined(__x86_64__)
    inside_ = new ucontext_t;
    outside_ = new ucontext_t;
#endif
}

fiber::~fiber()
{
    munmap(stack_, stack_bytes);
#if !defined(__x86_64__)
    delete static_cast<ucontext_t*>(inside_);
    delete static_cast<ucontext_t*>(outside_);
#endif
}

void fiber::first()
{
    fiber* self = starting;
    self->run_(self->argument_);
    self->leave();
    std::abort(); // a finished fiber was resumed
}

void fiber::start(entry run, void* argument)
{
    run_ = run;
    argument_ = argument;
#if defined(__x86_64__)
    auto* top = reinterpret_cast<std::uint64_t*>(static_cast<char*>(stack_) + stack_bytes);
    *--top = 0;                                        // keeps rsp % 16 == 8 at the first instruction, and ends the stack
    *--top = reinterpret_cast<std::uint64_t>(&first);  // popped by ret
    for (int i = 0; i < 6; ++i) *--top = 0;            // the six saved registers
    inside_ = top;
#else
    auto* context = static_cast<ucontext_t*>(inside_);
    getcontext(context);
    context->uc_stack.ss_sp = stack_;
    context->uc_stack.ss_size = stack_bytes;
    context->uc_link = nullptr;
    makecontext(context, reinterpret_cast<void (*)()>(&first), 0);
#endif
}

void fiber::resume()
{
    starting = this;
#if defined(__x86_64__)
    slipstream_model_switch(&outside_, inside_);
#else
    swapcontext(static_cast<ucontext_t*>(outside_), static_cast<ucontext_t*>(inside_));
#endif
}

void fiber::leave()
{
#if defined(__x86_64__)
    slipstream_model_switch(&inside_, outside_);
#else
    swapcontext(static_cast<ucontext_t*>(inside_), static_cast<ucontext_t*>(outside_));
#endif
}

} // namespace slipstream::model
