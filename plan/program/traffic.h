/* traffic.h - what a program's ranks send in a step, by kind of traffic. */
#ifndef HP_TRAFFIC_H
#define HP_TRAFFIC_H

#include "plan/program/program.h"

typedef struct hp_sent {
    double
        bytes; /* messages: as sent; collectives: the rank's share of what must move (hp_collective_volume) */
    int64_t number; /* messages sent and collectives taken part in */
} hp_sent;

/* The kind of traffic of messages on a channel; of a send, a receive or a collective. */
static inline hp_traffic hp_channel_traffic(int channel) {
    return channel & HP_CHANNEL_WITHIN ? HP_TRAFFIC_HALO : HP_TRAFFIC_STAGE;
}
hp_traffic hp_task_traffic(const hp_role *r, const hp_task *t);

/* Adds what one rank of a role sends to sent[HP_TRAFFICS]. */
void hp_role_sends(const hp_program *p, const hp_role *r, hp_sent *sent);

/* What all ranks send in a step; cost: linear in tasks. */
void hp_program_sends(const hp_program *p, hp_sent *sent);
/* The bytes of all kinds together. */
int64_t hp_program_sent_bytes(const hp_program *p);

#endif
