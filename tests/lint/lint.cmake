# lint.cmake - tests/lint/run, and that it finds the violations that it is there for. The whole tree under clang-tidy and
# cppcheck takes minutes: ctest -C Long -L long.
find_package(Python3 COMPONENTS Interpreter)
if(Python3_FOUND)
  add_test(NAME lint COMMAND ${CMAKE_CURRENT_LIST_DIR}/run --build ${CMAKE_BINARY_DIR})
  add_test(NAME lint_finds COMMAND bash ${CMAKE_CURRENT_LIST_DIR}/test.sh)
  set_tests_properties(lint lint_finds PROPERTIES LABELS cli TIMEOUT 600)
  add_test(NAME lint_all CONFIGURATIONS Long
           COMMAND ${CMAKE_CURRENT_LIST_DIR}/run --all --build ${CMAKE_BINARY_DIR} analysis)
  set_tests_properties(lint_all PROPERTIES LABELS long TIMEOUT 3600)
endif()
