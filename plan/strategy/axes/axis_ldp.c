/* axis_ldp.c - `ldp`: data parallelism within the stages after the spatial ones. Its rule lives with `tail`.
 * */
#include "plan/strategy/axis_kinds.h"

const hp_axis hp_axis_ldp = {.name = "ldp",
                             .example = "ldp=2",
                             .usual = "1",
                             .means = "data parallelism within the stages after the spatial ones",
                             HP_DEGREE(ldp),
                             .cut_key = hp_field_cut_key};
