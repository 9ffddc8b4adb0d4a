# Third-party libraries, each under the name ropewalk_dep::<x>. Nothing is downloaded.
# A library belongs to the module named beside it; only that module links it (the headers are pinned
# by tools/check_layers.py). A library that is absent is reported by the module that needs it.

find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)

set_property(GLOBAL PROPERTY ropewalk_dep_packages "")

# ropewalk_dep(<name> PACKAGE <apt package> TARGET <imported target>)
# ropewalk_dep(<name> PACKAGE <apt package> PKGCONFIG <modules…>)
# Defines ropewalk_dep::<name>, or records which package would provide it.
function(ropewalk_dep name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "PACKAGE;TARGET" "PKGCONFIG")
  set_property(GLOBAL PROPERTY "ropewalk_dep_package_${name}" "${arg_PACKAGE}")
  if(arg_PKGCONFIG)
    pkg_check_modules("dep_${name}" QUIET IMPORTED_TARGET GLOBAL ${arg_PKGCONFIG})
    set(arg_TARGET "PkgConfig::dep_${name}")
  endif()
  if(TARGET "${arg_TARGET}")
    add_library("ropewalk_dep::${name}" ALIAS "${arg_TARGET}")
  endif()
endfunction()

find_package(BZip2 QUIET)
find_package(fmt QUIET GLOBAL)
find_package(nlohmann_json QUIET GLOBAL)
find_package(CLI11 QUIET GLOBAL)
find_package(GTest QUIET GLOBAL)
find_package(benchmark QUIET GLOBAL)
find_package(ArrowAnywhere QUIET)

# core
ropewalk_dep(fmt PACKAGE libfmt-dev TARGET fmt::fmt)
ropewalk_dep(nlohmann_json PACKAGE nlohmann-json3-dev TARGET nlohmann_json::nlohmann_json)
ropewalk_dep(simdjson PACKAGE libsimdjson-dev PKGCONFIG simdjson)
# exec
ropewalk_dep(threads PACKAGE libc6-dev TARGET Threads::Threads)
# codec
ropewalk_dep(zstd PACKAGE libzstd-dev PKGCONFIG libzstd)
ropewalk_dep(lz4 PACKAGE liblz4-dev PKGCONFIG liblz4)
ropewalk_dep(deflate PACKAGE libdeflate-dev PKGCONFIG libdeflate)
ropewalk_dep(isal PACKAGE libisal-dev PKGCONFIG libisal)
ropewalk_dep(crypto PACKAGE libssl-dev PKGCONFIG libcrypto)
ropewalk_dep(bz2 PACKAGE libbz2-dev TARGET BZip2::BZip2)
# bag
ropewalk_dep(sqlite3 PACKAGE libsqlite3-dev PKGCONFIG sqlite3)
ropewalk_dep(yaml PACKAGE libyaml-dev PKGCONFIG yaml-0.1)
# video
ropewalk_dep(av PACKAGE "libavcodec-dev libavformat-dev libavutil-dev libswscale-dev"
             PKGCONFIG libavformat libavcodec libswscale libavutil)
# image
ropewalk_dep(turbojpeg PACKAGE libturbojpeg0-dev PKGCONFIG libturbojpeg)
ropewalk_dep(spng PACKAGE libspng-dev PKGCONFIG spng)
# message
ropewalk_dep(protobuf PACKAGE libprotobuf-dev PKGCONFIG protobuf)
ropewalk_dep(flatbuffers PACKAGE libflatbuffers-dev PKGCONFIG flatbuffers)
ropewalk_dep(cbor PACKAGE libcbor-dev PKGCONFIG libcbor)
# hdf5 (the C API alone)
ropewalk_dep(hdf5 PACKAGE libhdf5-dev PKGCONFIG hdf5)
# parquet; arrow also in the .cc files of episode and of the modules above it
ropewalk_dep(arrow PACKAGE "the Python package pyarrow" TARGET Arrow::arrow)
ropewalk_dep(parquet PACKAGE "the Python package pyarrow" TARGET Arrow::parquet)
# apps
ropewalk_dep(cli11 PACKAGE libcli11-dev TARGET CLI11::CLI11)
# tests, bench
ropewalk_dep(gtest_main PACKAGE "libgtest-dev libgmock-dev" TARGET GTest::gmock_main)
ropewalk_dep(gtest PACKAGE "libgtest-dev libgmock-dev" TARGET GTest::gmock)
ropewalk_dep(benchmark PACKAGE libbenchmark-dev TARGET benchmark::benchmark)
