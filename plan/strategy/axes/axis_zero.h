/* axis_zero.h - the strategy's key `zero`: what each rank keeps a part of alone (ZeRO; Rajbhandari et al., SC
 * 2020).
 *
 * Its text is the stage (0 nothing, 1 the optimiser's state, 2 gradients too, 3 parameters too), and of stage
 * 3 how many buckets are gathered ahead and whether what is gathered stays for the whole step: `3:2:keep`. */
#ifndef HP_AXIS_ZERO_H
#define HP_AXIS_ZERO_H

enum { HP_ZERO_STAGES = 3, HP_ZERO_PREFETCH = 1 /* unless said otherwise */ };

#endif
