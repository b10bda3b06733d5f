# kvproof_add_room(NAME SOURCES ... HEADERS ... [LINK ...] [PRIVATE_LINK ...])
# One library per folder: target kvproof_NAME, alias kvproof::NAME, headers included from the project root.
function(kvproof_add_room name)
  cmake_parse_arguments(PARSE_ARGV 1 room "" "" "SOURCES;HEADERS;LINK;PRIVATE_LINK")
  set(target kvproof_${name})
  add_library(${target} STATIC ${room_SOURCES})
  add_library(kvproof::${name} ALIAS ${target})
  target_sources(${target} PUBLIC FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR} FILES ${room_HEADERS})
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_link_libraries(${target} PUBLIC ${room_LINK} PRIVATE ${room_PRIVATE_LINK} $<BUILD_INTERFACE:kvproof_options>)
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name} POSITION_INDEPENDENT_CODE ON VERIFY_INTERFACE_HEADER_SETS ON)
endfunction()

# kvproof_add_test(NAME SOURCES ... LINK ... [LABELS ...] [TIMEOUT seconds])
# One Boost.Test program per room: ctest name unit.NAME.
function(kvproof_add_test name)
  if(NOT KVPROOF_BUILD_TESTS)
    return()
  endif()
  cmake_parse_arguments(PARSE_ARGV 1 test "" "TIMEOUT;CTEST_NAME" "SOURCES;LINK;LABELS;DEFINITIONS")
  if(NOT test_TIMEOUT)
    set(test_TIMEOUT 900)
  endif()
  if(NOT test_CTEST_NAME)
    set(test_CTEST_NAME unit.${name})
  endif()
  set(target kvproof_${name}_test)
  add_executable(${target} ${test_SOURCES} ${PROJECT_SOURCE_DIR}/cmake/boost_test_main.cpp)
  target_compile_definitions(${target} PRIVATE BOOST_TEST_DYN_LINK KVPROOF_TEST_NAME=${name}
    KVPROOF_SOURCE_DIR="${PROJECT_SOURCE_DIR}" ${test_DEFINITIONS})
  target_link_libraries(${target} PRIVATE ${test_LINK} Boost::unit_test_framework kvproof_options)
  target_compile_options(${target} PRIVATE
    $<$<CONFIG:Release>:-O1>  # compiled once, run once: half the time of -O3
    $<$<CXX_COMPILER_ID:GNU>:-Wno-mismatched-new-delete>)  # a counting operator new is malloc on purpose
  add_test(NAME ${test_CTEST_NAME} COMMAND ${target} --log_level=error)
  set_tests_properties(${test_CTEST_NAME} PROPERTIES TIMEOUT ${test_TIMEOUT} LABELS "${test_LABELS}")
endfunction()

# The readers of goldens that the pages show use numpy. The python3 that was found, first in PATH, may be some environment's
# without it; then the system's serves all tests, if it has it.
function(kvproof_prefer_python_with_numpy)
  foreach(python IN ITEMS ${Python3_EXECUTABLE} /usr/bin/python3)
    execute_process(COMMAND ${python} -c "import numpy" RESULT_VARIABLE code OUTPUT_QUIET ERROR_QUIET)
    if(code EQUAL 0)
      if(NOT python STREQUAL Python3_EXECUTABLE)
        message(STATUS "Tests run ${python}: ${Python3_EXECUTABLE} has no numpy")
      endif()
      set(Python3_EXECUTABLE ${python} PARENT_SCOPE)
      return()
    endif()
  endforeach()
  message(WARNING "${Python3_EXECUTABLE} has no numpy, nor has /usr/bin/python3: the test docs.readers will fail. script/setup installs it for the latter.")
endfunction()
