/* law_cases.c - over how many random draws a law is tried. */
#include "tests/support/plan/law_cases.h"

#include <stdlib.h>

#ifdef __SANITIZE_ADDRESS__
enum { SHARE = 6 };
#else
enum { SHARE = 1 };
#endif

uint64_t law_cases(uint64_t standard) {
    const char *wanted = getenv("HPLAN_LAW_CASES"), *times = getenv("HPLAN_LAW_TIMES");
    if (wanted) return strtoull(wanted, NULL, 10);
    return (standard * (times ? strtoull(times, NULL, 10) : 1) + SHARE - 1) / SHARE;
}
