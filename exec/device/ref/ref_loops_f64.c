/* ref_loops_f64.c - the loops of ref_loops.inc in float64: for tasks with a float64 operand. */
#include <math.h>

#define REAL            double
#define REAL_FN(name)   name##_f64
#define exponential_f64 exp
#include "exec/device/ref/ref_loops.inc"
