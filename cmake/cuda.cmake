# Decides whether this build has a GPU side. Sets SLIPSTREAM_CUDA_FOUND; enables the language CUDA when it is ON.
#
# A build without it is complete: everything that runs on the host device and in the model is built and tested.

include(CheckLanguage)

set(SLIPSTREAM_CUDA_FOUND OFF)
set(SLIPSTREAM_CUDA_MINIMUM 13.0)
set(SLIPSTREAM_DRIVER_MINIMUM 580)
set(needed "Needed for the GPU: CUDA ${SLIPSTREAM_CUDA_MINIMUM} or newer and driver ${SLIPSTREAM_DRIVER_MINIMUM} or newer.")

if(NOT SLIPSTREAM_CUDA)
  message(STATUS "Building for the host device only, as asked (SLIPSTREAM_CUDA=OFF).")
  return()
endif()

# A compiler that was missing at an earlier configure may have come since.
if(NOT CMAKE_CUDA_COMPILER)
  unset(CMAKE_CUDA_COMPILER CACHE)
endif()
check_language(CUDA)
if(NOT CMAKE_CUDA_COMPILER)
  set(hint "Put nvcc on the PATH or name it with -DCMAKE_CUDA_COMPILER=FILE.")
  if(EXISTS /usr/local/cuda/bin/nvcc)
    set(hint "There is an nvcc in /usr/local/cuda/bin, which is not on the PATH.")
  endif()
  message(STATUS "No working CUDA compiler found: building for the host device only. ${needed} ${hint}")
  return()
endif()

# Which code is generated is said by slipstream_cuda_flags (include/), not by CMake.
if(NOT CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES OFF)
endif()
enable_language(CUDA)
if(CMAKE_CUDA_COMPILER_VERSION VERSION_LESS SLIPSTREAM_CUDA_MINIMUM)
  message(WARNING "CUDA ${CMAKE_CUDA_COMPILER_VERSION} (${CMAKE_CUDA_COMPILER}) is too old: building for the host device only. ${needed}")
  return()
endif()
find_package(CUDAToolkit ${SLIPSTREAM_CUDA_MINIMUM} QUIET)
if(NOT CUDAToolkit_FOUND OR NOT TARGET CUDA::cudart_static)
  message(WARNING "nvcc works, but the CUDA toolkit's libraries were not found: building for the host device only. "
                  "Install the toolkit that ${CMAKE_CUDA_COMPILER} belongs to (cudart and its headers). ${needed}")
  return()
endif()
set(SLIPSTREAM_CUDA_FOUND ON)
include(cmake/slipstream_target_cuda.cmake)
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)

# The GPUs of this machine: their architectures are added to the generated code, an old driver is said at once.
set(SLIPSTREAM_LOCAL_ARCHITECTURES "")
execute_process(COMMAND nvidia-smi --query-gpu=compute_cap,driver_version --format=csv,noheader
                OUTPUT_VARIABLE local_gpus ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE smi)
if(smi EQUAL 0)
  string(REPLACE "\n" ";" local_gpus "${local_gpus}")
  foreach(gpu IN LISTS local_gpus)
    if(gpu MATCHES "^([0-9]+)\\.([0-9]+), *([0-9.]+)")
      list(APPEND SLIPSTREAM_LOCAL_ARCHITECTURES "${CMAKE_MATCH_1}${CMAKE_MATCH_2}")
      set(local_driver ${CMAKE_MATCH_3})
    endif()
  endforeach()
  list(REMOVE_DUPLICATES SLIPSTREAM_LOCAL_ARCHITECTURES)
  if(local_driver AND local_driver VERSION_LESS SLIPSTREAM_DRIVER_MINIMUM)
    message(WARNING "The NVIDIA driver ${local_driver} is too old: the GPU side is built, but cannot run here. ${needed}")
  endif()
endif()
message(STATUS "Building for the GPU too: CUDA ${CMAKE_CUDA_COMPILER_VERSION}.")
