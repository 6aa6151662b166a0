/* calibrate_show.h - a calibration for people and for programs. */
#ifndef HP_CALIBRATE_SHOW_H
#define HP_CALIBRATE_SHOW_H

#include "cli/cli.h"
#include "costmodels/rows.h"

/* Compute rows (one line per shape class), then nccl-tests-like tables of messages and all-reduces. */
void calibrate_print(const hp_cost_table *t);
json_t *calibrate_json(const hp_cost_table *t, const char *path, double elapsed_s, int runs);

#endif
