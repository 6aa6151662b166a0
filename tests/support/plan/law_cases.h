/* law_cases.h - over how many random draws a law is tried. */
#ifndef HP_TESTS_LAW_CASES_H
#define HP_TESTS_LAW_CASES_H

#include <stdint.h>

/* `standard`, or what the environment says: HPLAN_LAW_CASES=N exactly, HPLAN_LAW_TIMES=N that many times as
 * many. Under the sanitizers a sixth, as a draw costs several times as much there and the release build makes
 * them all. */
uint64_t law_cases(uint64_t standard);

#endif
