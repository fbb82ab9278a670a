# Writes the header that names the commit of this build; runs at every build and touches the file only when it changes.
# Called with -DSOURCE=dir -DOUTPUT=file -DVERSION=x.y.z.
set(commit unknown)
find_program(GIT_PROGRAM git)
if(GIT_PROGRAM)
  execute_process(COMMAND ${GIT_PROGRAM} -C ${SOURCE} rev-parse --short=12 HEAD
                  OUTPUT_VARIABLE head ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed)
  if(NOT failed)
    set(commit ${head})
    execute_process(COMMAND ${GIT_PROGRAM} -C ${SOURCE} status --porcelain
                    OUTPUT_VARIABLE changes ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
    if(NOT changes STREQUAL "")
      set(commit ${commit}-dirty)
    endif()
  endif()
endif()
set(text "// Written by write_commit.cmake at build time.
#pragma once
inline constexpr const char* slipstream_version = \"${VERSION}\";
inline constexpr const char* slipstream_commit = \"${commit}\";
")
set(old "")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} old)
endif()
if(NOT old STREQUAL text)
  file(WRITE ${OUTPUT} "${text}")
endif()
