/* axis.h - the axes of a tensor, in the order in which it is stored. */
#ifndef HP_AXIS_H_
#define HP_AXIS_H_

enum { HP_AXIS_N, HP_AXIS_H, HP_AXIS_W, HP_AXIS_C, HP_AXES };

#endif
