// refused: a buffer holds bytes for the device
#include "tests/misuse/case.hpp"
#include <string>

#ifdef MISUSE
using element = std::string;
#else
using element = char;
#endif

void use(runtime_base& runtime) { buffer<element> names(runtime, 3); }
