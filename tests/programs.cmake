# programs.cmake - tests/ mirrors the sources: tests/FOLDER/test_NAME.c is CTest's FOLDER/NAME, one process of the program test_FOLDER
# that holds all tests of a row below (tests/program.c). What a program links is decided by its folder alone, so that a test sees
# what the code it tests sees.

# tests/support/FOLDER: fixtures, compiled once; hp_support_FOLDER brings what they link
function(support folder needs)
  if(NOT TARGET ${needs})
    return()
  endif()
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/support/${folder}/*.c)
  if(NOT sources)
    return()
  endif()
  add_library(hp_support_${folder} STATIC ${sources})
  target_include_directories(hp_support_${folder} PUBLIC ${CMAKE_BINARY_DIR}/include/tests)
  target_link_libraries(hp_support_${folder} PUBLIC ${needs} ${ARGN} PkgConfig::CMOCKA)
endfunction()
support(plan hp_lib_plan)
support(onnx hp_lib_onnx hp_support_plan)
support(traces hp_lib_traces)
support(sim hp_lib_sim hp_support_plan)
support(exec hp_lib_exec hp_support_plan)
support(dnn hp_dnn hp_lib_exec)
if(TARGET hp_support_dnn)
  target_compile_definitions(hp_support_dnn PUBLIC HPLAN_TEST_DATA="${CMAKE_SOURCE_DIR}/tests/data")
endif()
support(standin hp_standin)
support(words hp_lib_cli)

# hp_test_program(TARGET tests/FOLDER/test_NAME.c...): a program of these tests. Each has a main of its own, renamed.
function(hp_test_program target)
  set(rows "")
  foreach(source ${ARGN})
    string(REGEX REPLACE "^tests/(.*)test_([^/]*)\\.c$" "\\1\\2" name ${source})
    string(REPLACE / _ id main_${name})
    file(STRINGS ${CMAKE_SOURCE_DIR}/${source} arguments REGEX "^int main\\(int")
    if(arguments)
      string(APPEND rows "TEST_OF_ARGUMENTS(\"${name}\", ${id})\n")
    else()
      string(APPEND rows "TEST(\"${name}\", ${id})\n")
    endif()
    set_source_files_properties(${source} PROPERTIES COMPILE_DEFINITIONS main=${id} COMPILE_OPTIONS -Wno-missing-prototypes)
  endforeach()
  file(CONFIGURE OUTPUT generated/tests/${target}.def CONTENT "${rows}")
  add_executable(${target} ${ARGN} tests/program.c)
  target_compile_definitions(${target} PRIVATE HPLAN_TESTS="${CMAKE_BINARY_DIR}/generated/tests/${target}.def")
  target_include_directories(${target} PRIVATE ${CMAKE_BINARY_DIR}/include/tests)
  target_link_libraries(${target} PRIVATE PkgConfig::CMOCKA)
endfunction()

# folder (the first row that matches) -> libraries; a folder whose first library is not built is left out
set(test_links
  "networks/onnx|hp_support_onnx hp_support_plan"
  "base|hp_support_plan"
  "networks|hp_support_plan"
  "machines|hp_support_plan"
  "plan|hp_support_plan"
  "checkpoints|hp_support_plan"
  "replays|hp_support_plan"
  "traces/check|hp_lib_check hp_support_traces hp_support_plan"
  "traces|hp_support_traces hp_support_plan"
  "plots|hp_lib_plots hp_support_traces"
  "costmodels|hp_support_sim" # cost tables are fitted to simulated runs
  "sim|hp_support_sim"
  "exec/cuda|hp_support_dnn hp_support_plan"
  "exec|hp_support_exec"
  "standin|hp_standin_device hp_support_standin hp_support_exec"
  "words|hp_support_words" # the command line, called as a function
  "laws|hp_support_exec hp_support_sim hp_support_onnx") # what holds between folders

# Tests that need speed, or compare bits that the optimiser may change: the short tier runs them in the optimised build, all others
# under the sanitizers. They are labelled `speed`.
set(speed_tests "^(laws|standin|exec/cuda|sim/search|plan/collectives|traces/check)/|^sim/(engine/(sim|jitter)|shrink/shrink)$|^exec/device/(infer/conv|split|sums)$|^plan/(check/faults|lower/lowering)$|^costmodels/drift$|^plots/plots$")
# Those that take more than three seconds there are not `quick`.
set(slow_tests "^(laws|standin)/|^exec/cuda/dnn/(plans|kept)$|^exec/comm/|^exec/data/(image/decoder|weights/weights)$|^sim/search/(search|fix)$|^costmodels/drift$|^plots/plots$")

# memory that a test gives back is kept for its next case: new pages cost a virtual machine more than what most cases do with them
set(surroundings "MALLOC_MMAP_THRESHOLD_=4294967296;MALLOC_TRIM_THRESHOLD_=17179869184;MALLOC_TOP_PAD_=67108864")
set(listed "")
foreach(row ${test_links})
  string(REGEX MATCH "^([^|]*)\\|([^ ]*)" unused "${row}")
  set(folder ${CMAKE_MATCH_1})
  set(first ${CMAKE_MATCH_2})
  string(REGEX REPLACE "^[^|]*\\|" "" libraries "${row}")
  string(REPLACE " " ";" libraries "${libraries}")
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/tests/${folder}/test_*.c)
  list(REMOVE_ITEM sources ${listed})
  list(APPEND listed ${sources})
  if(NOT TARGET ${first} OR NOT sources)
    continue()
  endif()
  string(REPLACE / _ target test_${folder})
  hp_test_program(${target} ${sources})
  target_link_libraries(${target} PRIVATE ${libraries})
  list(APPEND test_programs ${target})
  set(environment "${surroundings}")
  if(HPLAN_SANITIZE)
    # Open MPI keeps memory until the process ends, in modules that it has unloaded by then: no leak check with it
    string(REGEX MATCH "^(exec|standin|laws)" mpi "${row}")
    set(environment "UBSAN_OPTIONS=print_stacktrace=1;ASAN_OPTIONS=strict_string_checks=1:detect_leaks=$<NOT:$<BOOL:${mpi}>>")
  endif()
  foreach(source ${sources})
    string(REGEX REPLACE "^tests/(.*)test_([^/]*)\\.c$" "\\1\\2" name ${source})
    add_test(NAME ${name} COMMAND ${target} ${name})
    set(labels unit)
    if(name MATCHES "${speed_tests}")
      list(APPEND labels speed)
    endif()
    if(NOT name MATCHES "${slow_tests}")
      list(APPEND labels quick)
    endif()
    set_tests_properties(${name} PROPERTIES LABELS "${labels}" TIMEOUT ${HPLAN_HANG_S} WORKING_DIRECTORY ${CMAKE_BINARY_DIR}
                         ENVIRONMENT "${environment}")
    # laws tried on random draws: ten times as many in the whole suite
    file(STRINGS ${source} draws REGEX "law_(cases|run)\\.h")
    if(draws AND NOT HPLAN_SANITIZE)
      add_test(NAME long/${name} COMMAND ${target} ${name} CONFIGURATIONS All)
      set_tests_properties(long/${name} PROPERTIES LABELS long TIMEOUT 7200 WORKING_DIRECTORY ${CMAKE_BINARY_DIR}
                           ENVIRONMENT "HPLAN_LAW_TIMES=10;${environment}")
    endif()
  endforeach()
endforeach()

# up to eight ranks that wait for each other all the time, each wait as long as another program's turn on the core
foreach(test exec/comm/comm exec/comm/collectives exec/comm/shm standin/nccl_collectives)
  if(TEST ${test})
    set_tests_properties(${test} PROPERTIES PROCESSORS 2)
  endif()
endforeach()
# cuDNN compiles some kernels at run time, for which it wants to find the driver's library: the toolkit's stub
# of it will do. What it leaks when it is unloaded is its own
if(TARGET hp_dnn)
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/cuda-stubs)
  file(CREATE_LINK ${CUDAToolkit_LIBRARY_DIR}/stubs/libcuda.so ${CMAKE_BINARY_DIR}/cuda-stubs/libcuda.so.1 SYMBOLIC)
  foreach(test plans views choices kept strips)
    foreach(name exec/cuda/dnn/${test} long/exec/cuda/dnn/${test})
      if(TEST ${name})
        set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT
          "LD_LIBRARY_PATH=${CMAKE_BINARY_DIR}/cuda-stubs:$ENV{LD_LIBRARY_PATH}" ASAN_OPTIONS=detect_leaks=0)
      endif()
    endforeach()
  endforeach()
endif()
