/* draw_matrix.h - what tests of drawn convolutions and products count with. */
#ifndef HP_TESTS_DRAW_MATRIX_H
#define HP_TESTS_DRAW_MATRIX_H

#include "tests/support/exec/draw_layer.h"

/* Products that are added up, in either direction, and what is added besides. */
double terms_of(const draw *d);

/* Does the last window begin in the map? Others are refused. */
bool begins_inside(const draw *d);

#endif
