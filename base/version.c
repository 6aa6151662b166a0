/* version.c - release and commit, passed in by CMake. */
#include "base/version.h"

const char *hp_version(void) {
    return HPLAN_VERSION;
}

const char *hp_commit(void) {
    return HPLAN_COMMIT[0] ? HPLAN_COMMIT : "unknown";
}
