/* report_memory_parts.c - a rank's memory by what it is for, from the lifetimes of its buffers. */
#include "cli/report/report_data.h"

#include "plan/strategy/layout.h"
#include "sim/memory/sim_memory_fit.h"

#include <math.h>
#include <string.h>

enum { ALIGN = 64 /* as lowering places buffers */ };

enum { WEIGHTS, GRADIENTS, OPTIMIZER, ACTIVATIONS, HALOS, WORKSPACE, GAPS };

const char *const report_part_names[REPORT_PARTS] = {
    [WEIGHTS] = "weights",          [GRADIENTS] = "gradients",      [OPTIMIZER] = "optimiser",
    [ACTIVATIONS] = "activations",  [HALOS] = "halos and messages", [WORKSPACE] = "workspace",
    [GAPS] = "gaps between buffers"};

static const int part_of[HP_BUF_KINDS] = {
    [HP_BUF_WEIGHTS] = WEIGHTS,  [HP_BUF_GRADS] = GRADIENTS,    [HP_BUF_OPTIMIZER] = OPTIMIZER,
    [HP_BUF_STATE] = WEIGHTS,    [HP_BUF_METRIC] = WORKSPACE,   [HP_BUF_SCRATCH] = WORKSPACE,
    [HP_BUF_PACK] = WORKSPACE,   [HP_BUF_TENSOR] = ACTIVATIONS, [HP_BUF_GRADIENT] = ACTIVATIONS,
    [HP_BUF_SAVE] = ACTIVATIONS, [HP_BUF_LABELS] = ACTIVATIONS, [HP_BUF_MESSAGE] = HALOS,
    [HP_BUF_SUMS] = WORKSPACE,   [HP_BUF_BLOCK] = WORKSPACE,    [HP_BUF_CODE] = HALOS,
    [HP_BUF_CARRY] = WORKSPACE};

static int64_t aligned(int64_t bytes) {
    return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

/* Elements of the buffer's box that the role itself owns, in whichever of its stages it owns most. */
static int64_t owned_elems(const report *r, const hp_role *role, const hp_buffer *b) {
    const hp_strategy *s = &r->plan.strategy;
    int64_t most = 0;
    for (int i = 0; i < role->n_slot; i++) {
        const hp_layout l = hp_stage_layout(s, role->slot[i].stage % s->stages);
        const int part = role->slot[i].part / s->bp;
        if (part >= hp_layout_parts(&l)) continue;
        const hp_box own = hp_layout_own(&l, r->graph, b->what, r->plan.program->micro_batch, part);
        const hp_box both = hp_box_and(&own, &b->box);
        if (hp_box_elems(&both) > most) most = hp_box_elems(&both);
    }
    return most;
}

/* Of an activation's bytes those that other ranks own: its halo. 0 where replicas differ in their samples. */
static int64_t halo_bytes(const report *r, const hp_role *role, const hp_buffer *b) {
    const int64_t all = hp_box_elems(&b->box);
    if ((b->kind != HP_BUF_TENSOR && b->kind != HP_BUF_GRADIENT) || b->what < 0 ||
        b->what >= r->graph->n_tensor || all <= 0 || r->plan.program->n_share)
        return 0;
    return (int64_t)((double)b->bytes * (double)(all - owned_elems(r, role, b)) / (double)all);
}

/* Bytes that come (first task) and go (after the last) with each task, by part. */
static int64_t *changes(hp_arena *arena, const report *of, const hp_role *r) {
    int64_t *change = HP_NEW(arena, int64_t, (int64_t)(r->n_task + 2) * REPORT_PARTS);
    for (int i = 0; i < r->n_buffer; i++) {
        const hp_buffer *b = &r->buffer[i];
        const bool fixed = i < HP_BUF_FIXED;
        const int first = fixed ? 0 : b->first, last = fixed ? r->n_task : b->last;
        if (first < 0 || first > r->n_task || last < first || last > r->n_task) continue;
        const int64_t halo = halo_bytes(of, r, b), rest = aligned(b->bytes) - halo;
        int64_t *born = &change[(int64_t)first * REPORT_PARTS],
                *dead = &change[(int64_t)(last + 1) * REPORT_PARTS];
        born[part_of[b->kind]] += rest;
        born[HALOS] += halo;
        dead[part_of[b->kind]] -= rest;
        dead[HALOS] -= halo;
    }
    return change;
}

void report_split_memory(const report *of, int role, int64_t parts[REPORT_PARTS],
                         int64_t peaks[REPORT_PARTS]) {
    hp_arena *scratch = hp_arena_new();
    const hp_role *r = &of->plan.program->role[role];
    const int64_t *change = changes(scratch, of, r);
    int64_t now[REPORT_PARTS] = {0}, most = -1;
    memset(peaks, 0, sizeof now);
    for (int t = 0; t <= r->n_task; t++) {
        int64_t sum = 0;
        for (int k = 0; k < REPORT_PARTS; k++) {
            sum += now[k] += change[(int64_t)t * REPORT_PARTS + k];
            if (now[k] > peaks[k]) peaks[k] = now[k];
        }
        if (sum <= most) continue;
        most = sum;
        memcpy(parts, now, sizeof now);
    }
    parts[GAPS] = peaks[GAPS] = r->arena_bytes > most ? r->arena_bytes - most : 0;
    hp_arena_free(scratch);
}

double report_memory_capacity(const report *r) {
    const hp_machine *m = &r->plan.machine;
    const int clients = r->plan.program->clients, ranks = hp_program_ranks(r->plan.program),
              most = m->devices_per_node * clients;
    const hp_memory_limit l = hp_memory_limit_of(m, r->setup.memory_limit, clients, r->setup.eager);
    if (!l.node_bytes) return (double)l.rank_bytes;
    return fmin((double)l.rank_bytes, (double)l.node_bytes / (ranks < most ? ranks : most));
}
