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

# tests/support/FOLDER: fixtures, compiled once; hp_support_FOLDER brings what they link
function(support folder needs)
  if(NOT TARGET ${needs})
    return()
  endif()
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/support/${folder}/*.c)
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

# folder (the first row that matches) -> libraries; a folder whose first library is not built is left out
set(test_links
  "plan/onnx|hp_support_onnx hp_support_plan"
  "plan|hp_support_plan"
  "traces/check|hp_lib_check hp_support_traces hp_support_plan"
  "traces|hp_support_traces hp_support_plan"
  "plots|hp_lib_plots hp_support_traces"
  "costmodels|hp_support_sim" # cost tables are fitted to simulated runs
  "sim|hp_support_sim"
  "exec/cuda|hp_support_dnn hp_support_plan"
  "exec|hp_support_exec"
  "standin|hp_standin_device hp_support_standin hp_support_exec"
  "laws|hp_support_exec hp_support_sim hp_support_onnx") # what holds between folders

foreach(row ${test_links})
  # memory that a test gives back is kept for its next case: new pages cost a virtual machine more than what most cases do with them
  set(surroundings "MALLOC_MMAP_THRESHOLD_=4294967296;MALLOC_TRIM_THRESHOLD_=17179869184;MALLOC_TOP_PAD_=67108864")
  if(HPLAN_SANITIZE)
    # Open MPI keeps memory until the process ends, in modules that it has unloaded by then: no leak check with it
    string(REGEX MATCH "^(exec|standin|laws)" mpi "${row}")
    set(surroundings "UBSAN_OPTIONS=print_stacktrace=1;ASAN_OPTIONS=strict_string_checks=1:detect_leaks=$<NOT:$<BOOL:${mpi}>>")
  endif()
  string(REGEX MATCH "^([^|]*)\\|([^ ]*)" unused "${row}")
  set(folder ${CMAKE_MATCH_1})
  set(first ${CMAKE_MATCH_2})
  string(REGEX REPLACE "^[^|]*\\|" "" libraries "${row}")
  string(REPLACE " " ";" libraries "${libraries}")
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR}/tests ${CMAKE_SOURCE_DIR}/tests/${folder}/test_*.c)
  foreach(source ${sources})
    string(REGEX REPLACE "test_([^/]*)\\.c$" "\\1" short ${source})
    string(REPLACE / _ target test_${short})
    if(target IN_LIST test_targets)
      continue()
    endif()
    list(APPEND test_targets ${target})
    if(NOT TARGET ${first})
      continue()
    endif()
    add_executable(${target} tests/${source})
    target_include_directories(${target} PRIVATE ${CMAKE_BINARY_DIR}/include/tests)
    target_link_libraries(${target} PRIVATE PkgConfig::CMOCKA ${libraries})
    add_test(NAME ${short} COMMAND ${target})
    set_tests_properties(${short} PROPERTIES TIMEOUT 300 WORKING_DIRECTORY ${CMAKE_BINARY_DIR} ENVIRONMENT "${surroundings}")
    # laws tried on random draws: ten times as many by `ctest -C Long -L long`
    file(STRINGS tests/${source} draws REGEX "law_(cases|run)\\.h")
    if(draws)
      add_test(NAME long/${short} COMMAND ${target} CONFIGURATIONS Long)
      set_tests_properties(long/${short} PROPERTIES LABELS long TIMEOUT 3600 WORKING_DIRECTORY ${CMAKE_BINARY_DIR}
                           ENVIRONMENT "HPLAN_LAW_TIMES=10;${surroundings}")
    endif()
  endforeach()
endforeach()
# Seconds of processor time of those that take more than three: they start first, so that none is left alone at the end.
foreach(cost exec/cuda/dnn/plans=31 exec/device/infer/conv=26 sim/search/search=15 sim/search/fix=12 standin/nccl_collectives=30 standin/peer=14 exec/device/infer/point=8
        standin/infer=7 standin/train=6 exec/comm/comm=6 exec/run/calibrate=6 exec/data/weights/weights=6 laws/train=5
        laws/collective_programs=19 plan/strategy/strategy=5 exec/cuda/dnn/kept=5 plan/lower/lowering=5 exec/device/split=5 standin/nets=4
        laws/late=4 standin/parts=4 plots/plots=3 exec/device/infer/dynamic=3)
  string(REPLACE = ";" cost ${cost})
  list(POP_FRONT cost name seconds)
  if(TEST ${name})
    set_tests_properties(${name} PROPERTIES COST ${seconds})
  endif()
endforeach()
if(HPLAN_HAVE_EXEC)
  include(tests/gpu/gpu.cmake)
endif()
file(GLOB_RECURSE scripts CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/cli/cli_*.sh)
foreach(script ${scripts})
  get_filename_component(name ${script} NAME_WE)
  add_test(NAME ${name} COMMAND bash ${script})
  set_tests_properties(${name} PROPERTIES LABELS cli TIMEOUT 600 COST 20
    ENVIRONMENT "HPLAN=$<TARGET_FILE:hplan>;HPLAN_SOURCE=${CMAKE_SOURCE_DIR}")
endforeach()
# published figures: ctest -L experiments
set_tests_properties(cli_experiments PROPERTIES LABELS "cli;experiments")
# what may go wrong in a run: tests/faults/NAME.sh; KILLS=500 for kills.sh by hand. By hand alone: memory.sh, minutes of ranks
# that run out of memory in control groups, and ends.sh, minutes of runs that are stopped, killed and signalled
if(HPLAN_HAVE_EXEC)
  file(GLOB scripts CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/faults/*.sh)
  foreach(script ${scripts})
    get_filename_component(name ${script} NAME_WE)
    if(name MATCHES "^(memory|ends)$")
      add_test(NAME faults_${name} COMMAND bash ${script} CONFIGURATIONS Long)
    else()
      add_test(NAME faults_${name} COMMAND bash ${script})
    endif()
    set_tests_properties(faults_${name} PROPERTIES LABELS "cli;faults" TIMEOUT 600 COST 20 SKIP_RETURN_CODE 77
      ENVIRONMENT "HPLAN=$<TARGET_FILE:hplan>;HPLAN_SOURCE=${CMAKE_SOURCE_DIR}")
  endforeach()
endif()
# every kind of allocation and of writing fails, at a few places, by hand (minutes); at all of them: tests/faults/enumerate.py
# HPLAN no_memory.so 0
find_package(Python3 COMPONENTS Interpreter)
if(Python3_FOUND AND NOT HPLAN_SANITIZE AND NOT HPLAN_FUZZ)
  add_library(no_memory MODULE tests/faults/no_memory.c)
  add_test(NAME failures COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tests/faults/enumerate.py $<TARGET_FILE:hplan>
           $<TARGET_FILE:no_memory> 4 CONFIGURATIONS Long)
  set_tests_properties(failures PROPERTIES LABELS cli TIMEOUT 600)
endif()
# a Slurm on this machine: root, slurm-wlm, munge; three to five minutes
add_test(NAME slurm COMMAND bash ${CMAKE_SOURCE_DIR}/tests/slurm/requeue.sh CONFIGURATIONS Long)
set_tests_properties(slurm PROPERTIES LABELS slurm TIMEOUT 900 RUN_SERIAL ON ENVIRONMENT "HPLAN=$<TARGET_FILE:hplan>")
foreach(grace 0 30)
  add_test(NAME slurm_preempt_${grace} COMMAND bash ${CMAKE_SOURCE_DIR}/tests/slurm/preempt.sh CONFIGURATIONS Long)
  set_tests_properties(slurm_preempt_${grace} PROPERTIES LABELS slurm TIMEOUT 600 RUN_SERIAL ON
    ENVIRONMENT "HPLAN=$<TARGET_FILE:hplan>;GRACE=${grace}")
endforeach()
# several hosts on this machine, where that is permitted
add_test(NAME hosts COMMAND bash ${CMAKE_SOURCE_DIR}/tests/hosts/check.sh)
set_tests_properties(hosts PROPERTIES LABELS "cli;hosts" TIMEOUT 400 PROCESSORS 2 SKIP_RETURN_CODE 77
  ENVIRONMENT "HPLAN=$<TARGET_FILE:hplan>;HPLAN_SOURCE=${CMAKE_SOURCE_DIR}")
# a whole epoch on two ranks, which wait for each other at every step, and up to eight ranks that wait for each other all the time, each
# wait as long as another program's turn on the core: nothing beside them
set_tests_properties(cli_readme PROPERTIES PROCESSORS 2)
foreach(test exec/comm/comm exec/comm/collectives exec/comm/shm standin/nccl_collectives)
  if(TEST ${test})
    set_tests_properties(${test} PROPERTIES PROCESSORS 2)
  endif()
endforeach()
add_test(NAME cuda_link COMMAND bash ${CMAKE_SOURCE_DIR}/tests/cli/cuda_link.sh)
set_tests_properties(cuda_link PROPERTIES LABELS cli TIMEOUT 400 SKIP_RETURN_CODE 77)
# cuDNN compiles some kernels at run time, for which it wants to find the driver's library: the toolkit's stub
# of it will do. What it leaks when it is unloaded is its own
if(TARGET hp_dnn)
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/cuda-stubs)
  file(CREATE_LINK ${CUDAToolkit_LIBRARY_DIR}/stubs/libcuda.so ${CMAKE_BINARY_DIR}/cuda-stubs/libcuda.so.1 SYMBOLIC)
  foreach(test plans views choices kept strips)
    set_tests_properties(exec/cuda/dnn/${test} PROPERTIES ENVIRONMENT
      "LD_LIBRARY_PATH=${CMAKE_BINARY_DIR}/cuda-stubs:$ENV{LD_LIBRARY_PATH};ASAN_OPTIONS=detect_leaks=0")
  endforeach()
endif()
# tests/bench/bench_NAME.c: figures of docs/measurements.md that need no device
foreach(bench ring candidate rates)
  add_executable(bench_${bench} tests/bench/bench_${bench}.c)
  target_include_directories(bench_${bench} PRIVATE ${CMAKE_BINARY_DIR}/include/tests)
  target_link_libraries(bench_${bench} PRIVATE hp_support_sim)
endforeach()
if(HPLAN_HAVE_EXEC)
  add_executable(bench_shm tests/bench/bench_shm.c)
  target_link_libraries(bench_shm PRIVATE hp_lib_exec)
  add_executable(bench_signals tests/bench/bench_signals.c)
  target_link_libraries(bench_signals PRIVATE hp_lib_exec)
  add_executable(bench_decode tests/bench/bench_decode.c)
  target_include_directories(bench_decode PRIVATE ${CMAKE_BINARY_DIR}/include/tests)
  target_link_libraries(bench_decode PRIVATE hp_support_exec)
endif()
include(tests/fuzz/fuzz.cmake)
include(tests/lint/lint.cmake)
include(tests/accuracy/accuracy.cmake)
