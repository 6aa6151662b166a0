# version.cmake - the release, from git's newest tag vX.Y.Z; without a tag or outside git, the one below, which a release archive has.
# cmake -D SOURCE=FOLDER -P cli/packaging/version.cmake prints it.
#   HPLAN_RELEASE  0.1.0
#   HPLAN_COMMIT   1a2b3c4d5e6f; empty outside git
#   HPLAN_PACKAGED 0.1.0, or 0.1.0+37.1a2b3c4d5e6f after 37 commits
set(HPLAN_RELEASE 0.1.0)

# a folder inside of somebody else's checkout has no version of its own in git
function(hp_git folder result)
  set(output "")
  if(EXISTS ${folder}/.git)
    execute_process(COMMAND git -C ${folder} ${ARGN} OUTPUT_VARIABLE output OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  endif()
  set(${result} "${output}" PARENT_SCOPE)
endfunction()

if(NOT SOURCE)
  set(SOURCE ${CMAKE_CURRENT_SOURCE_DIR})
endif()
hp_git(${SOURCE} HPLAN_COMMIT rev-parse --short=12 HEAD)
hp_git(${SOURCE} described describe --tags --long --match "v[0-9]*.[0-9]*.[0-9]*")
if(described MATCHES "^v([0-9]+\\.[0-9]+\\.[0-9]+)-([0-9]+)-g")
  set(HPLAN_RELEASE ${CMAKE_MATCH_1})
  set(after ${CMAKE_MATCH_2})
else()
  hp_git(${SOURCE} after rev-list --count HEAD)
endif()
set(HPLAN_PACKAGED ${HPLAN_RELEASE})
if(after)
  string(APPEND HPLAN_PACKAGED "+${after}.${HPLAN_COMMIT}")
endif()
if(CMAKE_SCRIPT_MODE_FILE)
  message(STATUS "${HPLAN_RELEASE} ${HPLAN_PACKAGED}")
endif()
