# find_package(kvproof) and kvproof::engine for programs that use the engine as a library (docs/engine_library.md).
option(KVPROOF_INSTALL "Install the engine as a CMake package" ${PROJECT_IS_TOP_LEVEL})

add_library(kvproof_engine INTERFACE)
add_library(kvproof::engine ALIAS kvproof_engine)
target_link_libraries(kvproof_engine INTERFACE kvproof::session)
set_target_properties(kvproof_engine PROPERTIES EXPORT_NAME engine)

if(NOT KVPROOF_INSTALL)
  return()
endif()
include(CMakePackageConfigHelpers)
set(kvproof_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/kvproof)

# Headers keep their path from the project's root, under a folder of their own: #include "engine/session/session.hpp".
install(TARGETS
    kvproof_engine kvproof_base kvproof_safetensors kvproof_weights kvproof_model kvproof_kernels kvproof_cache kvproof_forward kvproof_session
  EXPORT kvproof_targets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT kvproof_engine
  FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/kvproof COMPONENT kvproof_engine)
install(EXPORT kvproof_targets NAMESPACE kvproof:: DESTINATION ${kvproof_package_dir} COMPONENT kvproof_engine)

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/kvproof-config.cmake.in ${PROJECT_BINARY_DIR}/kvproof-config.cmake
  INSTALL_DESTINATION ${kvproof_package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/kvproof-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES
    ${PROJECT_BINARY_DIR}/kvproof-config.cmake ${PROJECT_BINARY_DIR}/kvproof-config-version.cmake
    ${PROJECT_SOURCE_DIR}/cmake/FindOpenBLAS.cmake
  DESTINATION ${kvproof_package_dir} COMPONENT kvproof_engine)
