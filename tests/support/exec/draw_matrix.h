/* draw_matrix.h - term counts for tests of drawn convolutions and products. */
#ifndef HP_TESTS_DRAW_MATRIX_H
#define HP_TESTS_DRAW_MATRIX_H

#include "tests/support/exec/draw_layer.h"

/* Number of products in the longest sum, in either direction, and of other terms. */
double terms_of(const draw *d);

/* Does the last window begin in the map? Others are refused. */
bool begins_inside(const draw *d);

#endif
