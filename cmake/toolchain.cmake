# Compiler, linker and sanitizer settings of the whole build.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_VERIFY_INTERFACE_HEADER_SETS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
set_property(GLOBAL PROPERTY USE_FOLDERS ON)

get_property(ropewalk_multi_config GLOBAL PROPERTY GENERATOR_IS_MULTI_CONFIG)
if(NOT CMAKE_BUILD_TYPE AND NOT ropewalk_multi_config)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Build type" FORCE)
endif()

# Release is what users run: -O2, line tables for stack traces; hot files ask for -O3 (see SPEED in
# ropewalk_module). RelWithDebInfo is what developers run: quick to compile, asserts alive.
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -g1 -DNDEBUG")
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O1 -g1")
set(CMAKE_C_FLAGS_RELEASE "-O2 -g1 -DNDEBUG")
set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O1 -g1")

find_program(ROPEWALK_CCACHE ccache)
if(ROPEWALK_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${ROPEWALK_CCACHE}")
  set(CMAKE_C_COMPILER_LAUNCHER "${ROPEWALK_CCACHE}")
endif()

find_program(ROPEWALK_MOLD mold)
if(ROPEWALK_MOLD)
  add_link_options(-fuse-ld=mold)
endif()

if(ROPEWALK_SANITIZE)
  add_compile_options("-fsanitize=${ROPEWALK_SANITIZE}" -fno-omit-frame-pointer
                      -fno-sanitize-recover=all)
  add_link_options("-fsanitize=${ROPEWALK_SANITIZE}")
endif()
if(ROPEWALK_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "ROPEWALK_FUZZ needs clang (libFuzzer); use the preset fuzz")
  endif()
  # Coverage feedback for every library under the fuzz targets; the driver itself is linked by
  # ropewalk_fuzz_target alone.
  add_compile_options(-fsanitize=fuzzer-no-link)
  add_link_options(-fsanitize=fuzzer-no-link)
endif()
