/* law_cases.h - over how many random draws a law is tried, and what is left for the whole suite. */
#ifndef HP_TESTS_LAW_CASES_H
#define HP_TESTS_LAW_CASES_H

#include <stdbool.h>
#include <stdint.h>

/* `standard` in the whole suite (HPLAN_TIER=all, ./bootstrap test --all), a third of it in the short tier, or what the
 * environment says: HPLAN_LAW_CASES=N exactly, HPLAN_LAW_TIMES=N that many times as many. Under the sanitizers a sixth in
 * both tiers, as a draw costs several times as much there. Laws that count what they met count it against this number. */
uint64_t law_cases(uint64_t standard);

/* Of n things, or as many times n, as the whole suite does: n there, in the short tier what law_cases says. */
uint64_t law_some(uint64_t n);

/* Is this the whole suite, optimised? If not, says what is left for it: sizes that take minutes there take an hour under the
 * sanitizers, which find the same in the small ones. */
bool law_all(const char *title);

#endif
