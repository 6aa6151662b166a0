/* traffic.c - kinds of messages and collectives, and the bytes of each. */
#include "plan/program/traffic.h"

#include <math.h>
#include <string.h>

hp_traffic hp_task_traffic(const hp_role *r, const hp_task *t) {
    if (!hp_task_is_collective(t)) return hp_channel_traffic(r->queue[t->queue].channel);
    if (r->buffer[r->operand[t->operand]].kind == HP_BUF_SUMS) return HP_TRAFFIC_STATS;
    return (hp_traffic)((int)HP_TRAFFIC_ALLREDUCE + (int)hp_task_collective(t));
}

static double sent_of(const hp_program *p, const hp_role *r, const hp_task *t) {
    const double bytes = (double)hp_task_bytes(t);
    if (!hp_task_is_collective(t)) return bytes;
    return bytes * hp_collective_volume(hp_task_collective(t), hp_group_size(p, r->queue[t->queue].peer));
}

void hp_role_sends(const hp_program *p, const hp_role *r, hp_sent *sent) {
    for (int i = 0; i < r->n_task; i++) {
        const hp_task *t = &r->task[i];
        if (t->op != HP_TASK_SEND && !hp_task_is_collective(t)) continue;
        hp_sent *to = &sent[hp_task_traffic(r, t)];
        to->bytes += sent_of(p, r, t);
        to->number++;
    }
}

void hp_program_sends(const hp_program *p, hp_sent *sent) {
    memset(sent, 0, HP_TRAFFICS * sizeof *sent);
    for (int i = 0; i < p->n_role; i++) hp_role_sends(p, &p->role[i], sent);
    for (int k = 0; k < HP_TRAFFICS; k++) {
        sent[k].bytes *= p->dp;
        sent[k].number *= p->dp;
    }
}

int64_t hp_program_sent_bytes(const hp_program *p) {
    hp_sent sent[HP_TRAFFICS];
    double bytes = 0;
    hp_program_sends(p, sent);
    for (int k = 0; k < HP_TRAFFICS; k++) bytes += sent[k].bytes;
    return (int64_t)llround(bytes);
}
