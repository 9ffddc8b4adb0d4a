# Finds Arrow C++ and Parquet C++ where they are: an installed development package, else the headers
# and libraries inside the pyarrow wheel of Python3_EXECUTABLE.
#
# Defines the imported targets Arrow::arrow and Arrow::parquet and the variable ArrowAnywhere_VERSION.
# Libraries of a wheel carry their version in the file name (libarrow.so.2600) and no plain .so link,
# so they are linked by full path; CMake then puts that directory into the run path.

find_package(Arrow CONFIG QUIET GLOBAL)
find_package(Parquet CONFIG QUIET GLOBAL)

if(TARGET Arrow::arrow_shared AND TARGET Parquet::parquet_shared)
  set(ArrowAnywhere_VERSION "${Arrow_VERSION}")
  set(ArrowAnywhere_ORIGIN "installed package")
  add_library(Arrow::arrow ALIAS Arrow::arrow_shared)
  add_library(Arrow::parquet ALIAS Parquet::parquet_shared)
else()
  if(NOT Python3_EXECUTABLE AND EXISTS "${PROJECT_SOURCE_DIR}/.venv/bin/python")
    set(Python3_EXECUTABLE "${PROJECT_SOURCE_DIR}/.venv/bin/python" CACHE FILEPATH
        "Python with pyarrow")
  endif()
  if(NOT Python3_EXECUTABLE)
    find_package(Python3 QUIET COMPONENTS Interpreter)
  endif()
  if(Python3_EXECUTABLE)
    execute_process(
      COMMAND "${Python3_EXECUTABLE}" -c
              "import pyarrow; print(pyarrow.__version__, pyarrow.get_include(), pyarrow.get_library_dirs()[0], sep=';')"
      OUTPUT_VARIABLE wheel OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
  endif()
  if(Python3_EXECUTABLE AND failed EQUAL 0)
    list(GET wheel 0 ArrowAnywhere_VERSION)
    list(GET wheel 1 wheel_include)
    list(GET wheel 2 wheel_libs)
    set(ArrowAnywhere_ORIGIN "pyarrow wheel")
    foreach(lib IN ITEMS arrow parquet)
      file(GLOB candidates "${wheel_libs}/lib${lib}.so.*")
      # Of libarrow.so.2600 and libarrow.so.2600.0.0 the shorter one is the soname.
      set(chosen "")
      foreach(candidate IN LISTS candidates)
        if(candidate MATCHES "\\.so\\.[0-9]+$")
          set(chosen "${candidate}")
        endif()
      endforeach()
      if(chosen)
        add_library(Arrow::${lib} SHARED IMPORTED GLOBAL)
        set_target_properties(Arrow::${lib} PROPERTIES
          IMPORTED_LOCATION "${chosen}"
          INTERFACE_INCLUDE_DIRECTORIES "${wheel_include}"
          INTERFACE_SYSTEM_INCLUDE_DIRECTORIES "${wheel_include}")
      endif()
    endforeach()
    if(TARGET Arrow::parquet AND TARGET Arrow::arrow)
      set_property(TARGET Arrow::parquet PROPERTY INTERFACE_LINK_LIBRARIES Arrow::arrow)
    endif()
  endif()
endif()

if(TARGET Arrow::arrow AND TARGET Arrow::parquet)
  set(ArrowAnywhere_FOUND TRUE)
  message(STATUS "Arrow ${ArrowAnywhere_VERSION} (${ArrowAnywhere_ORIGIN})")
else()
  set(ArrowAnywhere_FOUND FALSE)
  message(STATUS "Arrow: not found (Python3_EXECUTABLE=${Python3_EXECUTABLE}); run make setup")
endif()
