/* counts.h - lists of counts as users write them: "1,2,4", "1,2,4,...,1536". */
#ifndef HP_COUNTS_H
#define HP_COUNTS_H

#include "base/status.h"

/* "1,2,4,...,1536" goes on as the numbers before the dots do: by the factor between them (two numbers of which one is
 * twice the other, or three of one ratio; a single number is doubled), else by their difference, and ends in the last
 * number whether it is met or not. Dots may be the character for them (U+2026). `what` names the list in errors, `room`
 * is the most counts. Errors: HP_EUSAGE. */
hp_status hp_parse_counts(const char *text, const char *what, int room, int *count, int *n, hp_error *err);

#endif
