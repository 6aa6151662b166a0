/* run_parts.h - gathers all trained parameters on the host, on ranks that each keep only a part (zero=3). */
#ifndef HP_RUN_PARTS_H
#define HP_RUN_PARTS_H

#include "exec/comm/comm.h"

/* Writes the rank's parts of `whole` (role->trained_elems elements) to `parts`, the host's view of its
 * buffer. */
void hp_parts_split(const hp_program *p, int role, int replica, const unsigned char *whole,
                    unsigned char *parts);
/* The other way, the other members' parts included. Collective: over all ranks of the joined program. */
hp_status hp_parts_join(hp_comm *comm, const hp_program *p, int role, int replica, const unsigned char *parts,
                        unsigned char *whole, double limit_s, hp_error *err);

#endif
