# One call defines a module: library, headers, warnings, unit tests.
#
#   ropewalk_module(NAME io
#     SOURCES local_store.cc memory_store.cc
#     HEADERS io.h store.h                        # public headers; checked to compile alone
#     TESTS local_store_test.cc                   # one executable io_test, one ctest entry
#     DEPS ropewalk::core                         # modules named in public headers or linked
#     LIBS ropewalk_dep::fmt                      # third party, visible to users of the module
#     PRIVATE_LIBS ropewalk_dep::zstd             # third party, for this module's .cc files alone
#     TEST_LIBS ropewalk::codec                   # further libraries of the tests
#     TEST_TIMEOUT 120                            # seconds for the whole executable
#     SPEED hot.cc)                               # files compiled with -O3 in Release
#
# gives the static library ropewalk_io with the alias ropewalk::io. A module without SOURCES is an
# interface library. Tests run in the project root, with ROPEWALK_SOURCE_DIR defined as its path.

# Designated initialisers with defaults are house style. At -O2 g++ 12 warns of uninitialised members of
# std::variant that are not there, so a release build takes no warning for an error.
set(ROPEWALK_WARNINGS -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion
    "$<$<NOT:$<CONFIG:Release>>:-Werror>" -Wno-missing-field-initializers
    "$<$<AND:$<CONFIG:Release>,$<CXX_COMPILER_ID:GNU>>:-Wno-maybe-uninitialized>")
set_property(GLOBAL PROPERTY ropewalk_skipped "")

# Adds a directory that has a CMakeLists.txt.
macro(ropewalk_add_directory dir)
  if(EXISTS "${PROJECT_SOURCE_DIR}/${dir}/CMakeLists.txt")
    add_subdirectory("${PROJECT_SOURCE_DIR}/${dir}")
  elseif(NOT ROPEWALK_PARTIAL)
    message(FATAL_ERROR "${dir}/CMakeLists.txt: not found")
  endif()
endmacro()

# Sets <out> to a sentence about the first file or target that is missing, or to "".
function(ropewalk_find_missing out)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "FILES;TARGETS")
  set("${out}" "" PARENT_SCOPE)
  foreach(file IN LISTS arg_FILES)
    if(NOT EXISTS "${CMAKE_CURRENT_SOURCE_DIR}/${file}")
      set("${out}" "file ${file} is not there" PARENT_SCOPE)
      return()
    endif()
  endforeach()
  foreach(target IN LISTS arg_TARGETS)
    if(NOT TARGET "${target}")
      set("${out}" "target ${target} is not there" PARENT_SCOPE)
      if(target MATCHES "^ropewalk_dep::(.*)$")
        get_property(package GLOBAL PROPERTY "ropewalk_dep_package_${CMAKE_MATCH_1}")
        set("${out}" "${target} is not there: install ${package} (make setup does)" PARENT_SCOPE)
      endif()
      return()
    endif()
  endforeach()
endfunction()

# Stops, or in a partial build records that `name` is left out.
function(ropewalk_skip name reason)
  if(NOT ROPEWALK_PARTIAL)
    message(FATAL_ERROR "${name}: ${reason}")
  endif()
  message(WARNING "${name} is skipped: ${reason}")
  set_property(GLOBAL APPEND PROPERTY ropewalk_skipped "${name}")
endfunction()

function(ropewalk_report_skipped)
  get_property(skipped GLOBAL PROPERTY ropewalk_skipped)
  if(skipped)
    message(STATUS "Partial build, without: ${skipped}")
  endif()
endfunction()

# Adds one gtest executable and its ctest entry.
#   ropewalk_test(<name> SOURCES … LIBS … [TIMEOUT s] [LABELS …] [OWN_MAIN])
function(ropewalk_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "OWN_MAIN" "TIMEOUT" "SOURCES;LIBS;LABELS")
  if(NOT ROPEWALK_TESTS)
    return()
  endif()
  if(arg_OWN_MAIN)
    set(main ropewalk_dep::gtest)
  else()
    set(main ropewalk_dep::gtest_main)
  endif()
  ropewalk_find_missing(missing FILES ${arg_SOURCES} TARGETS ${arg_LIBS} ${main})
  if(missing)
    ropewalk_skip("${name}" "${missing}")
    return()
  endif()
  add_executable("${name}" ${arg_SOURCES})
  target_link_libraries("${name}" PRIVATE ${arg_LIBS} ${main} ropewalk_dep::threads)
  target_include_directories("${name}" PRIVATE "${PROJECT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/src")
  target_compile_options("${name}" PRIVATE ${ROPEWALK_WARNINGS})
  target_compile_definitions("${name}" PRIVATE "ROPEWALK_SOURCE_DIR=\"${PROJECT_SOURCE_DIR}\"")
  set_target_properties("${name}" PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/tests")
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  if(ROPEWALK_SANITIZE)
    math(EXPR arg_TIMEOUT "${arg_TIMEOUT} * 5")
  endif()
  add_test(NAME "${name}" COMMAND "${name}" WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}")
  set_tests_properties("${name}" PROPERTIES TIMEOUT "${arg_TIMEOUT}" LABELS "unit;${arg_LABELS}")
endfunction()

function(ropewalk_module)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME;TEST_TIMEOUT"
    "SOURCES;HEADERS;TESTS;DEPS;LIBS;PRIVATE_LIBS;TEST_LIBS;SPEED")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "ropewalk_module(${arg_NAME}): unknown: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  ropewalk_find_missing(missing
    FILES ${arg_SOURCES} ${arg_HEADERS} TARGETS ${arg_DEPS} ${arg_LIBS} ${arg_PRIVATE_LIBS})
  if(missing)
    ropewalk_skip("${arg_NAME}" "${missing}")
    return()
  endif()

  set(target "ropewalk_${arg_NAME}")
  if(arg_SOURCES)
    add_library(${target} STATIC ${arg_SOURCES})
    set(scope PUBLIC)
    target_compile_options(${target} PRIVATE ${ROPEWALK_WARNINGS})
    target_link_libraries(${target} PRIVATE ${arg_PRIVATE_LIBS})
  else()
    add_library(${target} INTERFACE)
    set(scope INTERFACE)
  endif()
  add_library("ropewalk::${arg_NAME}" ALIAS ${target})
  target_include_directories(${target} ${scope} "${PROJECT_SOURCE_DIR}/src")
  target_link_libraries(${target} ${scope} ${arg_DEPS} ${arg_LIBS})
  if(arg_HEADERS)
    target_sources(${target} ${scope}
      FILE_SET HEADERS BASE_DIRS "${PROJECT_SOURCE_DIR}/src" FILES ${arg_HEADERS})
  endif()
  if(arg_SPEED)
    set_property(SOURCE ${arg_SPEED} APPEND PROPERTY COMPILE_OPTIONS "$<$<CONFIG:Release>:-O3>")
  endif()

  if(arg_TESTS)
    if(NOT arg_TEST_TIMEOUT)
      set(arg_TEST_TIMEOUT 120)
    endif()
    ropewalk_test("${arg_NAME}_test" SOURCES ${arg_TESTS} TIMEOUT ${arg_TEST_TIMEOUT}
      LIBS ${target} ${arg_LIBS} ${arg_PRIVATE_LIBS} ${arg_TEST_LIBS})
  endif()
endfunction()
