/* damage.c - a program with a few words of its arrays changed at random. */
#include "tests/support/plan/damage.h"

/* A random word of a random array of the program, except for the lengths of arrays. */
static int32_t *random_word(victim *v) {
    hp_role *r = v->r;
    const struct {
        void *at;
        size_t bytes;
    } part[] = {
        {r->task, sizeof *r->task * (size_t)r->n_task},
        {r->task, sizeof *r->task * (size_t)r->n_task},
        {r->buffer, sizeof *r->buffer * (size_t)r->n_buffer},
        {r->buffer, sizeof *r->buffer * (size_t)r->n_buffer},
        {r->operand, sizeof *r->operand * (size_t)r->n_operand},
        {r->dep_first, sizeof *r->dep_first * (size_t)(r->n_task + 1)},
        {r->dep, sizeof *r->dep * (size_t)r->n_dep},
        {r->queue, sizeof *r->queue * (size_t)r->n_queue},
        {r->place, sizeof *r->place * (size_t)v->g->n_param},
        {r->pack_forward, sizeof *r->pack_forward * (size_t)v->g->n_layer},
        {r->slot, sizeof *r->slot * (size_t)r->n_slot},
        {v->p->group, sizeof *v->p->group * (size_t)v->p->n_group},
        {v->p->member, sizeof *v->p->member * (size_t)v->p->n_member},
        {v->p, offsetof(hp_program, n_role)},
        {&r->trained_elems, 3 * sizeof(int64_t)},
    };
    const int k = roll(&v->d, 0, (int)(sizeof part / sizeof *part) - 1);
    if (part[k].bytes < sizeof(int32_t)) return NULL;
    return (int32_t *)part[k].at + roll(&v->d, 0, (int)(part[k].bytes / sizeof(int32_t)) - 1);
}

static int32_t random_value(dice *d, int32_t old) {
    static const int32_t extreme[] = {0, -1, 1, INT32_MAX, INT32_MIN, 1 << 20, 255, 65536};
    switch (roll(d, 0, 3)) {
    case 0:
        return extreme[roll(d, 0, 7)];
    case 1:
        return old + (coin(d) ? 1 : -1) * (old < 1000 && old > -1000);
    case 2:
        return old ^ (int32_t)(1u << roll(d, 0, 31));
    default:
        return (int32_t)(uint32_t)hp_rng_below(d->seed, 78, d->n++, UINT64_C(1) << 32);
    }
}

void damage(victim *v, const hp_program *whole) {
    v->p = copy_program(v->arena, v->g, whole);
    v->r = &v->p->role[roll(&v->d, 0, whole->n_role - 1)];
    for (int n = roll(&v->d, 1, 3); n > 0; n--) {
        int32_t *word = random_word(v);
        if (word) *word = random_value(&v->d, *word);
    }
}
