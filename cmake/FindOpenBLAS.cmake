# OpenBLAS with its CBLAS header, as target OpenBLAS::OpenBLAS. A module of our own: Debian's OpenBLASConfig.cmake sets variables
# only, and since Debian 13 they point to folders that do not exist. Used by the build and by the installed package.
find_path(OpenBLAS_INCLUDE_DIR NAMES openblas_config.h
  PATH_SUFFIXES openblas-pthread openblas-openmp openblas-serial openblas ${CMAKE_LIBRARY_ARCHITECTURE}/openblas-pthread)
find_library(OpenBLAS_LIBRARY NAMES openblas PATH_SUFFIXES openblas-pthread openblas-openmp openblas-serial)
if(OpenBLAS_INCLUDE_DIR AND EXISTS ${OpenBLAS_INCLUDE_DIR}/openblas_config.h)
  file(STRINGS ${OpenBLAS_INCLUDE_DIR}/openblas_config.h OpenBLAS_version_line REGEX "define OPENBLAS_VERSION ")
  string(REGEX MATCH "[0-9]+\\.[0-9]+\\.[0-9]+" OpenBLAS_VERSION "${OpenBLAS_version_line}")
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(OpenBLAS REQUIRED_VARS OpenBLAS_LIBRARY OpenBLAS_INCLUDE_DIR VERSION_VAR OpenBLAS_VERSION)
mark_as_advanced(OpenBLAS_INCLUDE_DIR OpenBLAS_LIBRARY)

if(OpenBLAS_FOUND AND NOT TARGET OpenBLAS::OpenBLAS)
  add_library(OpenBLAS::OpenBLAS UNKNOWN IMPORTED)
  set_target_properties(OpenBLAS::OpenBLAS PROPERTIES
    IMPORTED_LOCATION ${OpenBLAS_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES ${OpenBLAS_INCLUDE_DIR})
endif()
