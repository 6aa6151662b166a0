/* adamw_case.h - AdamW by its publication, on a rig of one linear layer. */
#ifndef HP_TESTS_ADAMW_CASE_H
#define HP_TESTS_ADAMW_CASE_H

#include "tests/support/exec/one_layer.h"

/* Loshchilov & Hutter, ICLR 2019, algorithm 2, lines 6 to 12, in float64: a filled rig's parameters and
 * moments after the update that rig_run runs; its matrix decays, its bias does not. The device's may differ
 * by at most `bound`. Opens the rig. */
void adamw_check(rig *r, double bound);

/* Checks the metric's sum of squared gradients, to the given relative error. Call after adamw_check. */
void norm_check(rig *r, double bound);

#endif
