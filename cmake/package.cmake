# What `cmake --install` gives: headers, the device headers that workers' kernels are instantiated from, the library, and a
# CMake package with the targets slipstream::slipstream, slipstream::engines and slipstream::cuda_flags.
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/slipstream)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/slipstream DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        COMPONENT slipstream_package FILES_MATCHING PATTERN "*.hpp" PATTERN "*.cuh")
install(DIRECTORY ${PROJECT_SOURCE_DIR}/device DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/slipstream/internal
        COMPONENT slipstream_package FILES_MATCHING PATTERN "*.hpp" PATTERN "*.cuh")
install(FILES ${PROJECT_SOURCE_DIR}/host/engines/arrivals.hpp ${PROJECT_SOURCE_DIR}/host/engines/engine.hpp
              ${PROJECT_SOURCE_DIR}/host/engines/program.hpp ${PROJECT_SOURCE_DIR}/host/engines/stopwatch.hpp
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/slipstream/internal/host/engines COMPONENT slipstream_package)
install(TARGETS slipstream slipstream_engines slipstream_headers slipstream_cuda_flags EXPORT slipstream_targets
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT slipstream_package)
install(EXPORT slipstream_targets NAMESPACE slipstream:: FILE slipstreamTargets.cmake DESTINATION ${package_dir}
        COMPONENT slipstream_package)

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/slipstreamConfig.cmake.in
  ${PROJECT_BINARY_DIR}/package/slipstreamConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/package/slipstreamConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/package/slipstreamConfig.cmake
              ${PROJECT_BINARY_DIR}/package/slipstreamConfigVersion.cmake
              ${PROJECT_SOURCE_DIR}/cmake/slipstream_target_cuda.cmake
        DESTINATION ${package_dir} COMPONENT slipstream_package)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/README.md
        DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/slipstream COMPONENT slipstream_package)
