/* bounds.c - what a step moves. */
#include "sim/engine/bounds.h"

#include "plan/program/traffic.h"

#include <math.h>

int64_t hp_sim_comm_bytes(const hp_program *p) {
    hp_sent sent[HP_TRAFFICS];
    double bytes = 0;
    hp_program_sends(p, sent);
    for (int k = 0; k < HP_TRAFFICS; k++) bytes += sent[k].bytes;
    return (int64_t)llround(bytes);
}
