/* simulate_show.h - how the results of `simulate` are shown, in words and as JSON. */
#ifndef HP_SIMULATE_SHOW_H
#define HP_SIMULATE_SHOW_H

#include "cli/options/simulate_found.h"

/* Predicts the selected plan with what changes its numbers: simulate_found.gain. */
void simulate_gains(hp_arena *arena, const simulate_setup *s, simulate_found *f);
void simulate_print_gains(const simulate_found *f);
json_t *simulate_gains_json(const simulate_found *f);
/* What is found of the chosen plan beside its figures (simulate_facts.c), and in words. */
void simulate_find_facts(hp_arena *arena, const simulate_setup *s, simulate_found *f);
void simulate_print_real(const simulate_found *f);
/* False: there is nothing to be said of ZeRO. */
bool simulate_zero_note(const simulate_found *f, char out[200]);
/* The parts of the two below that say machine, device and precision. */
void simulate_print_device(const simulate_setup *s, const simulate_found *f);
void simulate_json_device(const simulate_setup *s, const simulate_found *f, json_t *o);
void simulate_print(const simulate_setup *s, const simulate_found *f);
/* Parts of it: candidates and families without one; how sure the answer is. */
void simulate_print_table(const simulate_setup *s, const simulate_found *f);
/* One row per count of each curve; what an epoch of the selected plan takes. */
void simulate_print_scaling(const simulate_setup *s, const simulate_found *f);
void simulate_print_epoch(const simulate_setup *s, const simulate_found *f);
json_t *simulate_scaling_json(const simulate_found *f);
/* As plan.db keeps them for plots: {"dp=*": ["dp=1", "dp=2"]}; "": none. */
const char *simulate_curves_text(hp_arena *arena, const simulate_found *f);
/* Where the plan is, and the commands that may follow. */
void simulate_next(const simulate_setup *s, const simulate_found *f, const char *path);
json_t *simulate_json(const simulate_setup *s, const simulate_found *f);
/* Three significant digits, no unit. */
const char *simulate_number(double value, char out[32]);
/* "8.14-11.5", milliseconds, with `between` between the ends; false: "not known". */
bool simulate_interval(const hp_candidate *c, const char *between, char out[64]);
/* The first candidate of the table but the chosen one, from 1; 0: none. */
int simulate_shown_other(const simulate_setup *s, const simulate_found *f);
/* Does too little of the predicted time rest on measurements, for a machine at hand? Then: hplan calibrate
 * --net NAME. */
bool simulate_unmeasured(const hp_candidate *c);

/* The plans of several image sizes. */
void simulate_print_sizes(const simulate_sizes *sizes);
json_t *simulate_sizes_json(const simulate_sizes *sizes);

#endif
