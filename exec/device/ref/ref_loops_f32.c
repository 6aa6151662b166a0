/* ref_loops_f32.c - the loops of ref_loops.inc in float32: for tasks whose operands are all quantised or
 * halves. */
#include <math.h>

#define REAL            float
#define REAL_FN(name)   name##_f32
#define exponential_f32 expf
#include "exec/device/ref/ref_loops.inc"
