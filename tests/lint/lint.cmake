# lint.cmake - what of tests/lint/run needs a build (the rest comes first in ./bootstrap test), and that it finds the violations that it
# is there for. The whole tree under clang-tidy and cppcheck takes minutes: ctest -C All -R lint_all.
find_package(Python3 COMPONENTS Interpreter)
if(Python3_FOUND)
  add_test(NAME lint COMMAND ${CMAKE_CURRENT_LIST_DIR}/run --build ${CMAKE_BINARY_DIR} planned analysis)
  add_test(NAME lint_finds COMMAND bash ${CMAKE_CURRENT_LIST_DIR}/test.sh)
  set_tests_properties(lint lint_finds PROPERTIES LABELS cli TIMEOUT ${HPLAN_HANG_S})
  add_test(NAME lint_all CONFIGURATIONS All
           COMMAND ${CMAKE_CURRENT_LIST_DIR}/run --all --build ${CMAKE_BINARY_DIR} analysis)
  set_tests_properties(lint_all PROPERTIES LABELS long TIMEOUT 7200)
endif()
