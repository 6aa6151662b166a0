/* law_cases.h - how many random draws a law is tried on, and what only the whole suite runs. */
#ifndef HP_TESTS_LAW_CASES_H
#define HP_TESTS_LAW_CASES_H

#include <stdbool.h>
#include <stdint.h>

/* Number of draws: `standard` in the whole suite (HPLAN_TIER=all, ./bootstrap test --all), a third of it in
 * the short tier, or as the environment says: HPLAN_LAW_CASES=N exactly, HPLAN_LAW_TIMES=N times that many.
 * Under the sanitizers it is a sixth in both tiers, as a draw costs several times as much there. Laws that
 * count what they met compare it with this number. */
uint64_t law_cases(uint64_t standard);

/* Number of things, or a size, that the whole suite tries n of; fewer in the short tier, as law_cases. */
uint64_t law_some(uint64_t n);

/* Is this the whole suite, optimised? If not, prints what is left to it: sizes that take minutes there would
 * take an hour under the sanitizers, which find the same in small ones. */
bool law_all(const char *title);

#endif
