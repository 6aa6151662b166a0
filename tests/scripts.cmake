# scripts.cmake - tests of the programs as a user starts them: tests/cli/cli_*.sh and tests/faults/*.sh, each in a scratch folder
# (tests/cli/lib.sh). They run optimised builds alone; what they have in common is made once (tests/cli/fixtures.sh).
find_package(Python3 COMPONENTS Interpreter)
set(fixtures ${CMAKE_BINARY_DIR}/fixtures)
set(script_environment "HPLAN=$<TARGET_FILE:hplan>;HPLAN_SOURCE=${CMAKE_SOURCE_DIR};HPLAN_FIXTURES=${fixtures}")

# hp_script(NAME FILE LABELS... [CONFIGURATIONS All]): a script is CTest's NAME; 77: what it needs is not here.
function(hp_script name file)
  cmake_parse_arguments(F "WHOLE" "" "LABELS;ARGUMENTS" ${ARGN})
  set(when "")
  if(F_WHOLE)
    set(when CONFIGURATIONS All)
  endif()
  add_test(NAME ${name} COMMAND bash ${CMAKE_SOURCE_DIR}/tests/${file} ${F_ARGUMENTS} ${when})
  set_tests_properties(${name} PROPERTIES LABELS "cli;${F_LABELS}" TIMEOUT ${HPLAN_HANG_S} COST 20 SKIP_RETURN_CODE 77
                       ENVIRONMENT "${script_environment}")
endfunction()

hp_script(fixtures cli/fixtures.sh ARGUMENTS ${fixtures})
set_tests_properties(fixtures PROPERTIES FIXTURES_SETUP made COST 100)
file(GLOB_RECURSE scripts CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR}/tests ${CMAKE_SOURCE_DIR}/tests/cli/cli_*.sh)
foreach(script ${scripts})
  get_filename_component(name ${script} NAME_WE)
  hp_script(${name} ${script})
  file(STRINGS ${CMAKE_SOURCE_DIR}/tests/${script} takes REGEX "^ *fixture |HPLAN_FIXTURES")
  if(takes)
    set_tests_properties(${name} PROPERTIES FIXTURES_REQUIRED made)
  endif()
endforeach()
# published figures: ctest -L experiments
set_tests_properties(cli_experiments PROPERTIES LABELS "cli;experiments")
hp_script(cuda_link cli/cuda_link.sh)
# the Debian package in a clean Debian: minutes
hp_script(package cli/install/package.sh WHOLE)
# the report's page in headless Chromium, where there is one
hp_script(report_browser report/browser.sh)
set_tests_properties(report_browser PROPERTIES FIXTURES_REQUIRED made)

# what may go wrong in a run; KILLS=500 tests/faults/kills.sh by hand. In the whole suite alone: memory.sh, minutes of ranks that run
# out of memory in control groups, and ends.sh, minutes of runs that are stopped, killed and signalled
if(HPLAN_HAVE_EXEC)
  file(GLOB scripts CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR}/tests ${CMAKE_SOURCE_DIR}/tests/faults/*.sh)
  foreach(script ${scripts})
    get_filename_component(name ${script} NAME_WE)
    if(name MATCHES "^(memory|ends)$")
      hp_script(faults_${name} ${script} LABELS faults WHOLE)
    else()
      hp_script(faults_${name} ${script} LABELS faults)
    endif()
  endforeach()
  # several hosts on this machine, where that is permitted
  hp_script(hosts hosts/check.sh LABELS hosts WHOLE)
  hp_script(hosts_faults hosts/faults.sh LABELS hosts WHOLE)
  set_tests_properties(hosts hosts_faults PROPERTIES PROCESSORS 2)
endif()
# every kind of allocation and of writing fails, at a few places; at all of them: tests/faults/enumerate.py HPLAN no_memory.so 0
if(Python3_FOUND)
  add_library(no_memory MODULE tests/faults/no_memory.c)
  add_test(NAME failures COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tests/faults/enumerate.py $<TARGET_FILE:hplan>
           $<TARGET_FILE:no_memory> 4 CONFIGURATIONS All)
  set_tests_properties(failures PROPERTIES LABELS cli TIMEOUT 7200)
endif()
# a Slurm on this machine: root, slurm-wlm, munge; three to five minutes
hp_script(slurm slurm/requeue.sh LABELS slurm WHOLE)
foreach(grace 0 30)
  hp_script(slurm_preempt_${grace} slurm/preempt.sh LABELS slurm WHOLE)
  set_tests_properties(slurm_preempt_${grace} PROPERTIES ENVIRONMENT "${script_environment};GRACE=${grace}")
endforeach()
set_tests_properties(slurm slurm_preempt_0 slurm_preempt_30 PROPERTIES RUN_SERIAL ON)
