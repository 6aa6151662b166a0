/* bounds.h - what a program moves: a pure function of it. */
#ifndef HP_BOUNDS_H
#define HP_BOUNDS_H

#include "sim/engine/interp.h"

/* Bytes sent by all ranks in a step: of all kinds together (plan/program/traffic.h). */
int64_t hp_sim_comm_bytes(const hp_program *p);

#endif
