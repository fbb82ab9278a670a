# slipstream_target_cuda(target): prepares a target of the user's whose .cu files make a slipstream::runtime.
#
# Links slipstream::slipstream, asks for C++20, and generates machine code for sm_90a, PTX of compute_80 for later GPUs, and
# machine code for the GPUs of the machine that Slipstream was built on. CMake's own choice of architectures is turned off.
function(slipstream_target_cuda target)
  if(DEFINED slipstream_CUDA AND NOT slipstream_CUDA)
    message(FATAL_ERROR "slipstream_target_cuda(${target}): this Slipstream was built without CUDA; "
                        "build and install it on a machine with nvcc, or compile ${target} as C++ for the host device")
  endif()
  set_target_properties(${target} PROPERTIES CUDA_STANDARD 20 CUDA_STANDARD_REQUIRED ON CUDA_ARCHITECTURES OFF)
  target_link_libraries(${target} PRIVATE slipstream::slipstream slipstream::cuda_flags)
endfunction()

# CMake 3.25 does not know that nvcc speaks C++20.
if(NOT DEFINED CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
endif()
