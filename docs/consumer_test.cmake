# What docs/engine_library.md promises, done as a stranger would: install the engine, build the page's example against the
# installed package, run it on the seed model. Called with -D SOURCE, BUILD, CONFIG, COMPILER, FLAGS, GENERATOR.
cmake_minimum_required(VERSION 3.25)

set(example ${SOURCE}/docs/examples/consumer)
set(work ${BUILD}/consumer)
file(REMOVE_RECURSE ${work})

function(run)
  execute_process(COMMAND ${ARGV} OUTPUT_VARIABLE out ERROR_VARIABLE out RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${ARGV}: exit ${status}\n${out}")
  endif()
  set(out "${out}" PARENT_SCOPE)
endfunction()

# The page shows the very text of the files that are compiled below.
file(READ ${SOURCE}/docs/engine_library.md page)
foreach(shown IN ITEMS cmake:CMakeLists.txt cpp:main.cpp)
  string(REPLACE ":" ";" shown ${shown})
  list(GET shown 0 language)
  list(GET shown 1 name)
  file(READ ${example}/${name} text)
  string(FIND "${page}" "```${language}\n${text}```" at)
  if(at EQUAL -1)
    message(FATAL_ERROR "docs/engine_library.md does not show docs/examples/consumer/${name} as it is")
  endif()
endforeach()

run(${CMAKE_COMMAND} --install ${BUILD} --config ${CONFIG} --component kvproof_engine --prefix ${work}/prefix)

# Nothing of how the project itself is compiled reaches a consumer.
file(GLOB_RECURSE exported ${work}/prefix/*.cmake)
foreach(file IN LISTS exported)
  file(READ ${file} text)
  if(text MATCHES "-W[a-z]" OR text MATCHES "kvproof_options" OR text MATCHES "${SOURCE}")
    message(FATAL_ERROR "${file} exports `${CMAKE_MATCH_0}`")
  endif()
endforeach()

# -Werror of the consumer's own must hold for the installed headers too.
run(${CMAKE_COMMAND} -S ${example} -B ${work}/build -G ${GENERATOR} -DCMAKE_BUILD_TYPE=${CONFIG} -DCMAKE_CXX_COMPILER=${COMPILER}
    "-DCMAKE_CXX_FLAGS=${FLAGS} -Wall -Wextra -Werror" -DCMAKE_PREFIX_PATH=${work}/prefix)
run(${CMAKE_COMMAND} --build ${work}/build)
run(${work}/build/consumer ${SOURCE}/golden/seed)

# Transformers' own logits of this step begin -0.0405671, 0.100796 (golden/seed).
if(NOT out MATCHES "^columns in the cache: 4\nlogits: -0\\.04056[67][0-9]* 0\\.10079[56][0-9]* ")
  message(FATAL_ERROR "the example printed other logits:\n${out}")
endif()
execute_process(COMMAND ${work}/build/consumer ${SOURCE}/docs RESULT_VARIABLE status ERROR_VARIABLE out)
if(NOT status EQUAL 1 OR NOT out MATCHES "config.json")
  message(FATAL_ERROR "a folder without a model: exit ${status}\n${out}")
endif()
