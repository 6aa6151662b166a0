# accuracy.cmake - the judges' own arithmetic; the judges themselves are no tests, their figures depend on the machine
find_package(Python3 COMPONENTS Interpreter)
if(Python3_FOUND)
  add_test(NAME accuracy_laws COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/laws.py)
  set_tests_properties(accuracy_laws PROPERTIES LABELS cli TIMEOUT ${HPLAN_HANG_S})
endif()
