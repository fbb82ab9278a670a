// A build without CUDA.
#include "tools/slipstream/bench/bystander.hpp"
#include <slipstream/status.hpp>

namespace slipstream::bench {

std::unique_ptr<bystander> make_cuda_bystander(bool)
{
    throw device_error("this build has no CUDA: there is no kernel to run beside the engine");
}

} // namespace slipstream::bench
