/* law_cases.c - how many random draws a law is tried on. */
#include "tests/support/plan/law_cases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef HPLAN_SANITIZED
enum { SHARE = 6, SHORT_SHARE = 6, SANITIZED = 1 };
#else
enum { SHARE = 1, SHORT_SHARE = 3, SANITIZED = 0 };
#endif

static bool whole_suite(void) {
    const char *tier = getenv("HPLAN_TIER");
    return tier && strcmp(tier, "all") == 0;
}

uint64_t law_cases(uint64_t standard) {
    const char *wanted = getenv("HPLAN_LAW_CASES"), *times = getenv("HPLAN_LAW_TIMES");
    const uint64_t share = whole_suite() ? SHARE : SHORT_SHARE;
    if (wanted) return strtoull(wanted, NULL, 10);
    return (standard * (times ? strtoull(times, NULL, 10) : 1) + share - 1) / share;
}

uint64_t law_some(uint64_t n) {
    return whole_suite() ? n : (n + SHORT_SHARE - 1) / SHORT_SHARE;
}

bool law_all(const char *title) {
    const bool whole = whole_suite();
    if (whole && !SANITIZED) return true;
    fprintf(stderr, "left for %s: %s\n", whole ? "the optimised build" : "--all", title);
    return false;
}
