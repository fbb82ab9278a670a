# Installs a build into a prefix of its own; configures, builds and runs the consumer project against it.
#   cmake -DBUILD=... -DSOURCE=... -DWORK=... -DCONFIGURATION=... -DGENERATOR=... -DCXX=... [-DCUDA=nvcc] [-DFLAGS=...] -P run.cmake
function(run)
  list(JOIN ARGV " " line)
  message(STATUS "${line}")
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE result)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "failed (${result}): ${line}")
  endif()
endfunction()

file(REMOVE_RECURSE ${WORK})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix --config ${CONFIGURATION} --component slipstream_package)

# Nothing of the source tree may be needed: no path of it in the package.
file(GLOB_RECURSE package_files ${WORK}/prefix/*.cmake)
foreach(file IN LISTS package_files)
  file(READ ${file} text)
  if(text MATCHES "${SOURCE}/")
    message(FATAL_ERROR "the installed ${file} names the source folder ${SOURCE}")
  endif()
endforeach()

set(options -DCMAKE_PREFIX_PATH=${WORK}/prefix -DCMAKE_BUILD_TYPE=${CONFIGURATION} -DCMAKE_CXX_COMPILER=${CXX}
            "-DCMAKE_CXX_FLAGS=${FLAGS}")
if(CUDA)
  list(APPEND options -DCMAKE_CUDA_COMPILER=${CUDA})
endif()
run(${CMAKE_COMMAND} -S ${SOURCE}/tests/package -B ${WORK}/build -G ${GENERATOR} ${options})
run(${CMAKE_COMMAND} --build ${WORK}/build --config ${CONFIGURATION})
run(${WORK}/build/consumer_cpp)
run(${WORK}/build/comparison_cpp)
if(CUDA)
  run(${WORK}/build/consumer_cuda)
  run(${WORK}/build/comparison_cuda)
endif()
