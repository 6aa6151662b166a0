/* calibrate_show.h - a calibration as text and as JSON. */
#ifndef HP_CALIBRATE_SHOW_H
#define HP_CALIBRATE_SHOW_H

#include "cli/cli.h"
#include "costmodels/cost_rows.h"

/* Prints compute rows (one line per shape class), then tables of messages and collectives in nccl-tests'
 * style. */
void calibrate_print(const hp_cost_table *t);
/* The same as one JSON object. */
json_t *calibrate_json(const hp_cost_table *t, const char *path, double elapsed_s, int runs);

#endif
