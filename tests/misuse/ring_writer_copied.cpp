// refused: use of deleted function|call to implicitly-deleted copy constructor
#include "tests/misuse/case.hpp"
#include "device/host_platform.hpp"
#include "host/ring_writer.hpp"

using writer = slipstream::host::ring_writer<slipstream::device::host_platform>;

writer use(writer& of_this_thread)
{
#ifdef MISUSE
    return of_this_thread; // a second writer of the same slots
#else
    return std::move(of_this_thread);
#endif
}
