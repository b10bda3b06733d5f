# Tests about the project's own text: the order of the rooms, the rules for every source file, the scripts. Each rule is also
# shown to catch what it forbids (`*_catches`).

# kvproof_add_check(NAME COMMAND ...): a test that is a script.
function(kvproof_add_check name)
  cmake_parse_arguments(PARSE_ARGV 1 check "" "" "COMMAND")
  add_test(NAME ${name} COMMAND ${check_COMMAND} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES TIMEOUT 300 LABELS checks)
endfunction()

kvproof_add_check(layers COMMAND ${Python3_EXECUTABLE} cmake/check_layers.py ${PROJECT_SOURCE_DIR})
kvproof_add_check(layers_catches COMMAND ${Python3_EXECUTABLE} cmake/check_layers.py --self-test)
kvproof_add_check(sources COMMAND ${Python3_EXECUTABLE} cmake/check_sources.py ${PROJECT_SOURCE_DIR})
kvproof_add_check(sources_catches COMMAND ${Python3_EXECUTABLE} cmake/check_sources.py --self-test)
kvproof_add_check(script.check COMMAND script/check_test.sh)
kvproof_add_check(script.in_debian COMMAND script/in_debian_test.sh)
kvproof_add_check(script.python_venv COMMAND script/python_venv_test.sh)
