// refused: a temporary container is gone when the task runs
#include "tests/misuse/case.hpp"
#include <vector>

struct scale {
    in<float> x;
    EMPTY_BODY
};

void use(runtime<scale>& runtime)
{
#ifdef MISUSE
    runtime.submit(scale{std::vector<float>{1, 2}});
#else
    static std::vector<float> x{1, 2};
    runtime.submit(scale{x});
    runtime.submit(scale{std::span<float>(x)});      // only points at it
    runtime.submit(scale{buffer<float>(runtime, 2)}); // given back behind the task
#endif
}
