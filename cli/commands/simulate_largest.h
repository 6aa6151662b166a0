/* simulate_largest.h - `--image max` and `--batch max`: the largest size for which a plan exists. */
#ifndef HP_SIMULATE_LARGEST_H
#define HP_SIMULATE_LARGEST_H

#include "cli/options/simulate_found.h"

typedef struct simulate_largest {
    const char *option; /* "--image", "--batch"; NULL: none was asked for */
    int64_t size, step; /* pixels of a side or samples; sizes are multiples of the step */
    int tried;
    int64_t next; /* the smallest multiple above, which has no plan; 0: it was not tried */
    char why[700];
} simulate_largest;

/* Finds the size, and puts it into the options in place of "max". Errors: HP_EUSAGE (a question without an
 * answer), HP_EPLAN (even the smallest size has no plan). */
hp_status simulate_find_largest(hp_arena *arena, simulate_options *o, simulate_largest *l, hp_error *err);

void simulate_print_largest(const simulate_largest *l);
json_t *simulate_largest_json(const simulate_largest *l);

#endif
