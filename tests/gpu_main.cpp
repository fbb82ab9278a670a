// The entry point of the GPU tests: says SKIPPED (exit code 77) where there is no GPU to run them on, never passed.
#include <cstdio>
#include <cuda_runtime_api.h>
#define CATCH_CONFIG_RUNNER
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_session.hpp>
#else
#include <catch2/catch.hpp>
#endif

int main(int count, char** arguments)
{
    int devices = 0;
    const cudaError_t answer = cudaGetDeviceCount(&devices);
    if (answer != cudaSuccess || devices == 0) {
        std::printf("SKIPPED: no usable GPU (%s)\n", answer == cudaSuccess ? "none found" : cudaGetErrorString(answer));
        return 77;
    }
    // Not the number of failed assertions: 77 of them would read as skipped.
    return Catch::Session().run(count, arguments) == 0 ? 0 : 1;
}
