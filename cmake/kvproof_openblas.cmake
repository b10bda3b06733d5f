# OpenBLAS::OpenBLAS from whatever OpenBLASConfig.cmake offers: Debian's sets variables only, OpenBLAS' own CMake build brings the
# target. Used by the build and by the installed package.
if(NOT TARGET OpenBLAS::OpenBLAS)
  add_library(OpenBLAS::OpenBLAS INTERFACE IMPORTED)
  target_include_directories(OpenBLAS::OpenBLAS SYSTEM INTERFACE ${OpenBLAS_INCLUDE_DIRS})
  target_link_libraries(OpenBLAS::OpenBLAS INTERFACE ${OpenBLAS_LIBRARIES})
endif()
