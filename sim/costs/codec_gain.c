/* codec_gain.c - bytes saved and seconds spent by a program's encode and decode tasks. */
#include "sim/costs/codec_gain.h"

#include "plan/program/traffic.h"
#include "plan/program/work.h"

#include <math.h>
#include <string.h>

/* The kind of messages that the codes in a role's buffers are, and who sums them. */
typedef struct sender {
    int32_t traffic, group; /* -1: none */
} sender;

static bool is_code(const hp_role *r, const hp_task *t, int i) {
    const int32_t id = i < t->n_operand ? r->operand[t->operand + i] : -1;
    return id >= 0 && hp_buffer_is_code(&r->buffer[id]);
}

static sender *senders_of(hp_arena *arena, const hp_role *r) {
    sender *s = HP_NEW(arena, sender, r->n_buffer);
    memset(s, -1, sizeof *s * (size_t)r->n_buffer);
    for (int t = 0; t < r->n_task; t++) {
        const hp_task *k = &r->task[t];
        const hp_queue *q = &r->queue[k->queue];
        for (int i = 0; i < k->n_operand && q->kind != HP_QUEUE_COMPUTE; i++)
            if (is_code(r, k, i))
                s[r->operand[k->operand + i]] = q->kind == HP_QUEUE_COLL
                                                    ? (sender){HP_TRAFFIC_ALLREDUCE, q->peer}
                                                    : (sender){hp_channel_traffic(q->channel), -1};
    }
    return s;
}

/* Bytes by which the task moves a code. */
static double moved(const hp_program *p, const hp_role *r, const hp_task *t) {
    const double bytes = (double)hp_task_bytes(t);
    if (!hp_task_is_collective(t)) return t->op == HP_TASK_SEND ? bytes : 0;
    return bytes * hp_collective_volume(hp_task_collective(t), hp_group_size(p, r->queue[t->queue].peer));
}

/* Bytes that would be sent without encoding. */
static double plain(const hp_program *p, const hp_task *t, const sender *s) {
    const double bytes = (double)t->code.values * hp_dtype_bytes((hp_dtype)p->dtype);
    return s->group < 0 ? bytes
                        : bytes * hp_collective_volume(HP_COLLECTIVE_ALLREDUCE, hp_group_size(p, s->group));
}

static void add_role(hp_arena *arena, const hp_program *p, const hp_graph *g, const hp_role *r,
                     const hp_cost_table *table, const hp_machine *m, hp_codec_gain *gain) {
    const sender *of = senders_of(arena, r);
    for (int t = 0; t < r->n_task; t++) {
        const hp_task *k = &r->task[t];
        int at = 0;
        while (at < k->n_operand && !is_code(r, k, at)) at++;
        if (at == k->n_operand) continue;
        const sender *s = &of[r->operand[k->operand + at]];
        if (s->traffic < 0) continue;
        hp_codec_gain *to = &gain[s->traffic];
        if (r->task[t].queue != 0) {
            to->coded_bytes += moved(p, r, k);
            continue;
        }
        const hp_work w = hp_task_work(p, g, r, t);
        to->codec = r->buffer[r->operand[k->operand + at]].codec;
        to->codec_s += hp_cost_compute(table, m, &w).seconds;
        if (k->op != HP_TASK_ENCODE && k->op != HP_TASK_PROJECT) continue;
        to->messages++;
        to->plain_bytes += plain(p, k, s);
    }
}

void hp_codec_gains(hp_arena *arena, const hp_program *p, const hp_graph *g, const hp_cost_table *t,
                    const hp_machine *m, hp_codec_gain *gain) {
    memset(gain, 0, sizeof *gain * HP_TRAFFICS);
    for (int i = 0; i < p->n_role; i++) add_role(arena, p, g, &p->role[i], t, m, gain);
}

double hp_codec_break_even_bytes_per_s(const hp_codec_gain *gain) {
    const double saved = gain->plain_bytes - gain->coded_bytes;
    if (saved <= 0) return 0;
    return gain->codec_s > 0 ? saved / gain->codec_s : INFINITY;
}
