// refused: is private within this context|is a private member
#include "tests/misuse/case.hpp"
#include "device/host_platform.hpp"
#include "host/ring_writer.hpp"

using writer = slipstream::host::ring_writer<slipstream::device::host_platform>;

u64 use(writer& of_this_thread)
{
#ifdef MISUSE
    return reinterpret_cast<u64>(of_this_thread.ring_); // slots belong to ingest once written
#else
    return of_this_thread.position();
#endif
}
