/* adamw_case.h - AdamW by its publication, on a rig of one linear layer. */
#ifndef HP_TESTS_ADAMW_CASE_H
#define HP_TESTS_ADAMW_CASE_H

#include "tests/support/exec/one_layer.h"

/* Loshchilov & Hutter, ICLR 2019, algorithm 2, lines 6 to 12, in float64: a filled rig's parameters and moments after the
 * update that rig_run asks for, its matrix decaying and its bias not. The device's differ by no more than `bound`. Opens the
 * rig. */
void adamw_check(rig *r, double bound);

/* The sum of the gradients' squares, in the metric, to the given relative error. After adamw_check. */
void norm_check(rig *r, double bound);

#endif
