# tests.cmake - tests/ mirrors the sources: tests/FOLDER/test_NAME.c is one cmocka program, CTest's FOLDER/NAME. What it
# links is decided by its folder alone (test_links below), so that a test sees what the code it tests sees.
# Scripts: tests/cli/cli_*.sh (label cli), run in a scratch folder with HPLAN and HPLAN_SOURCE set.
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/include/tests)
file(CREATE_LINK ${CMAKE_SOURCE_DIR}/tests ${CMAKE_BINARY_DIR}/include/tests/tests SYMBOLIC)
pkg_check_modules(CMOCKA REQUIRED IMPORTED_TARGET cmocka)
# tests/standin/: what plays a GPU where there is none, for the tests in that folder
if(HPLAN_HAVE_EXEC)
  include(CheckLanguage)
  check_language(CXX)
  if(CMAKE_CXX_COMPILER)
    enable_language(CXX)
    add_subdirectory(tests/standin)
  endif()
endif()

# folder (the first row that matches) -> libraries; a folder whose first library is not built is left out
set(test_links
  "plan/onnx|hp_lib_onnx"
  "plan|hp_lib_plan"
  "traces/check|hp_lib_check"
  "traces|hp_lib_traces"
  "plots|hp_lib_plots"
  "costmodels|hp_lib_sim" # cost tables are fitted to simulated runs
  "sim|hp_lib_sim"
  "exec/cuda|hp_dnn hp_lib_exec"
  "exec|hp_lib_exec"
  "standin|hp_standin_device hp_lib_exec"
  "laws|hp_lib_exec hp_lib_sim hp_lib_onnx") # what holds between folders

foreach(row ${test_links})
  string(REGEX MATCH "^([^|]*)\\|([^ ]*)" unused "${row}")
  set(folder ${CMAKE_MATCH_1})
  set(first ${CMAKE_MATCH_2})
  string(REGEX REPLACE "^[^|]*\\|" "" libraries "${row}")
  string(REPLACE " " ";" libraries "${libraries}")
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR}/tests ${CMAKE_SOURCE_DIR}/tests/${folder}/test_*.c)
  foreach(source ${sources})
    string(REGEX REPLACE "test_([^/]*)\\.c$" "\\1" short ${source})
    string(REPLACE / _ target test_${short})
    if(NOT TARGET ${first} OR TARGET ${target})
      continue()
    endif()
    add_executable(${target} tests/${source})
    target_include_directories(${target} PRIVATE ${CMAKE_BINARY_DIR}/include/tests)
    target_link_libraries(${target} PRIVATE PkgConfig::CMOCKA ${libraries})
    add_test(NAME ${short} COMMAND ${target})
    set_tests_properties(${short} PROPERTIES TIMEOUT 300 WORKING_DIRECTORY ${CMAKE_BINARY_DIR})
  endforeach()
endforeach()
if(HPLAN_HAVE_EXEC)
  include(tests/gpu/gpu.cmake)
endif()
file(GLOB scripts CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/cli/cli_*.sh)
foreach(script ${scripts})
  get_filename_component(name ${script} NAME_WE)
  add_test(NAME ${name} COMMAND bash ${script})
  set_tests_properties(${name} PROPERTIES LABELS cli TIMEOUT 600
    ENVIRONMENT "HPLAN=$<TARGET_FILE:hplan>;HPLAN_SOURCE=${CMAKE_SOURCE_DIR}")
endforeach()
# tests/fuzz/fuzz_NAME.c: libFuzzer targets; tests/fuzz/run.sh runs them
if(HPLAN_FUZZ AND HPLAN_HAVE_EXEC)
  file(GLOB fuzz_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/fuzz/fuzz_*.c)
  foreach(source ${fuzz_sources} ${CMAKE_SOURCE_DIR}/tests/fuzz/seeds.c)
    get_filename_component(name ${source} NAME_WE)
    if(name STREQUAL seeds)
      set(name fuzz_seeds)
    endif()
    add_executable(${name} ${source})
    target_include_directories(${name} PRIVATE ${CMAKE_BINARY_DIR}/include/tests)
    target_link_libraries(${name} PRIVATE hp_lib_exec hp_lib_onnx)
    if(NOT name STREQUAL fuzz_seeds)
      target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    endif()
  endforeach()
endif()
add_test(NAME cuda_link COMMAND bash ${CMAKE_SOURCE_DIR}/tests/cli/cuda_link.sh)
set_tests_properties(cuda_link PROPERTIES LABELS cli TIMEOUT 400 SKIP_RETURN_CODE 77)
# cuDNN compiles some kernels at run time, for which it wants to find the driver's library: the toolkit's stub
# of it will do. What it leaks when it is unloaded is its own
if(TARGET hp_dnn)
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/cuda-stubs)
  file(CREATE_LINK ${CUDAToolkit_LIBRARY_DIR}/stubs/libcuda.so ${CMAKE_BINARY_DIR}/cuda-stubs/libcuda.so.1 SYMBOLIC)
  foreach(test plans views choices kept strips)
    target_compile_definitions(test_exec_cuda_dnn_${test} PRIVATE HPLAN_TEST_DATA="${CMAKE_SOURCE_DIR}/tests/data")
    set_tests_properties(exec/cuda/dnn/${test} PROPERTIES ENVIRONMENT
      "LD_LIBRARY_PATH=${CMAKE_BINARY_DIR}/cuda-stubs:$ENV{LD_LIBRARY_PATH};ASAN_OPTIONS=detect_leaks=0")
  endforeach()
endif()
include(tests/lint/lint.cmake)
