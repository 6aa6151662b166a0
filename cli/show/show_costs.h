/* show_costs.h - where a prediction's figures come from, in words. */
#ifndef HP_SHOW_COSTS_H
#define HP_SHOW_COSTS_H

#include "cli/cli.h"
#include "costmodels/table.h"
#include "sim/results/exposure.h"

enum { COSTS_TEXT = 320 };
/* "local.cost of 2026-11-22 (AMD EPYC 7763 64-Core Processor)", without control characters. */
static inline const char *costs_text(const hp_cost_table *t, char out[COSTS_TEXT]) {
    char raw[COSTS_TEXT];
    const char *processor = hp_cost_processor(t);
    snprintf(raw, sizeof raw, "%.160s%s%s%s", hp_cost_origin(t), *processor ? " (" : "", processor,
             *processor ? ")" : "");
    return cli_plain(raw, out, COSTS_TEXT);
}

/* Prints one line for each kind of task that rests on guesses or on other kinds' rates, with its part of the
 * predicted step. `head` ("number 1: ") begins each line. Prints nothing where there are none. */
void costs_print_unmeasured(const char *head, const hp_exposure *x);
/* [{"task", "guess", "datasheet"}], fractions of the step. */
json_t *costs_unmeasured_json(const hp_exposure *x);

#endif
