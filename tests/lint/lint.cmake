# lint.cmake - tests/lint/run finds the violations that it is there for.
find_package(Python3 COMPONENTS Interpreter)
if(Python3_FOUND)
  add_test(NAME lint_finds COMMAND bash ${CMAKE_CURRENT_LIST_DIR}/test.sh)
  set_tests_properties(lint_finds PROPERTIES LABELS cli TIMEOUT 300)
endif()
