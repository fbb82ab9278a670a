# Runs a program; fails unless it ends with 0 and prints exactly what is expected, and a line end.
#   cmake -DPROGRAM=FILE -DEXPECTED=TEXT -P output_is.cmake
execute_process(COMMAND ${PROGRAM} OUTPUT_VARIABLE output ERROR_VARIABLE errors RESULT_VARIABLE result)
if(NOT result EQUAL 0 OR NOT output STREQUAL "${EXPECTED}\n")
  message(FATAL_ERROR "${PROGRAM} ended with ${result} and printed\n${output}\nwhere it should print\n${EXPECTED}\n${errors}")
endif()
