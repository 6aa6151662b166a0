/* counts.h - lists of counts as users write them: "1,2,4", "1,2,4,...,1536". */
#ifndef HP_COUNTS_H
#define HP_COUNTS_H

#include "base/status.h"

/* "1,2,4,...,1536" continues the numbers before the dots. They grow by a factor if there are two numbers, one
 * twice the other, or three with one ratio; a single number is doubled. Otherwise they grow by their
 * difference. The list always ends with the last number, even if the series misses it. The dots may be
 * U+2026. `what` names the list in errors; `room` is the maximum number of counts. Errors: HP_EUSAGE. */
hp_status hp_parse_counts(const char *text, const char *what, int room, int *count, int *n, hp_error *err);

#endif
