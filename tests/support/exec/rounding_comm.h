/* rounding_comm.h - a communicator that passes values through a codec on their way: what a program that sends codes must
 * equal bit for bit. Messages are rounded where they arrive, where the codec makes them smaller; all-reduces of float32
 * are done on codes: those that can be are added up; else all are gathered, decoded and added, and what the codec has lost
 * of a range of memory is added to what it sums next. */
#ifndef HP_TESTS_ROUNDING_COMM_H
#define HP_TESTS_ROUNDING_COMM_H

#include "exec/comm/comm.h"
#include "plan/codec/codec.h"

/* Takes `inner` over. A codec of 0 leaves that kind alone. *most: becomes the largest magnitude of what a rank gives to an
 * all-reduce of float32; NULL: nobody asks. */
hp_comm *rounding_comm_new(hp_comm *inner, hp_codec messages, hp_codec sums, double *most);

#endif
