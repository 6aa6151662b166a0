/* uneven.c - proportions for devices of different speed. Each replica, and each row and column of tiles, gets
 * as much as its slowest rank can do in the time of the others. Speeds only suggest where to look: exchanges,
 * redundant computing and rounding decide, so neighbouring proportions are simulated. */
#include "sim/search/search_points.h"
#include "sim/search/search.h"

#include "plan/lower/lower_placement.h"

#include <math.h>
#include <stdlib.h>

enum {
    TRIES = 14,     /* simulations per axis */
    AROUND = 4,     /* numbers of units tried on either side of the proportional one */
    MOST_KINDS = 3, /* kinds of speeds: one per class, or a slow node in addition */
    UNITS = 16      /* units of the fastest tiles */
};
static const double LIKE = 0.02; /* speeds that are one */
static const double GAIN = 0.01; /* the simulator's accuracy */

typedef struct refiner {
    hp_eval *eval;
    hp_arena *arena;
    hp_evaluation *best;
} refiner;

/* The replicas of a strategy, or its rows or columns of tiles. */
typedef struct members {
    int n, kind[HP_MAX_PROPORTIONS];
    double speed[HP_MAX_PROPORTIONS];
    int n_kind, count[MOST_KINDS];
    double of_kind[MOST_KINDS]; /* in the order of the members */
} members;

/* --- speeds --- */

/* Row or column of tiles that a part is in; -1: its stage has none. */
static int tile_of(const hp_strategy *s, int axis, int position, int part) {
    const hp_layout l = hp_stage_layout(s, position);
    const int tile = part / s->bp / hp_layout_per_tile(&l), parts = axis == HP_AXIS_H ? l.rows : l.cols;
    if (parts == 1) return -1;
    return axis == HP_AXIS_H ? tile / l.cols % l.rows : tile % l.cols;
}

static void note_speed(members *m, int member, double speed) {
    if (member >= 0 && (m->speed[member] == 0 || speed < m->speed[member])) m->speed[member] = speed;
}

static void add_speeds(const refiner *r, const hp_strategy *s, int axis, members *m) {
    const hp_machine *machine = hp_eval_get(r->eval)->machine;
    const int roles = hp_strategy_roles(s);
    const hp_placement at = hp_placement_of_strategy(r->arena, s, machine);
    for (int rank = 0; rank < hp_strategy_ranks(s); rank++) {
        const int device = hp_placement_device(&at, rank);
        const double speed = hp_machine_speed_at(machine, device) /
                             hp_eval_class_seconds(r->eval, s, hp_machine_class_at(machine, device));
        for (int flip = 0; flip < hp_flips(s); flip++) {
            int position, part;
            hp_role_place(s, rank % roles, flip, &position, &part);
            note_speed(m, axis == HP_AXIS_N ? rank / roles : tile_of(s, axis, position, part), speed);
        }
    }
}

/* Returns false if there are too many kinds, or only one. */
static bool sort_kinds(members *m) {
    for (int i = 0; i < m->n; i++) {
        int k = 0;
        while (k < m->n_kind && fabs(m->speed[i] - m->of_kind[k]) > LIKE * m->of_kind[k]) k++;
        if (k == MOST_KINDS) return false;
        if (k == m->n_kind) m->of_kind[m->n_kind++] = m->speed[i];
        m->kind[i] = k;
        m->count[k]++;
    }
    return m->n_kind > 1;
}

/* --- what could be better --- */

typedef struct trial {
    int units[MOST_KINDS];
    double slowest; /* largest units per speed; the smallest value over all trials is best */
} trial;

typedef struct trials {
    const members *m;
    int fastest;
    int64_t samples; /* samples to distribute; 0: tiles, with any number of units */
    trial *list;
    int n;
} trials;

/* Slowest time relative to what all members together could do. */
static double slowest_of(const members *m, const int *units) {
    double slowest = 0, work = 0, speed = 0;
    for (int k = 0; k < m->n_kind; k++) {
        slowest = fmax(slowest, units[k] / m->of_kind[k]);
        work += (double)units[k] * m->count[k];
        speed += m->of_kind[k] * m->count[k];
    }
    return slowest / (work / speed);
}

/* The fastest kind takes the remaining samples. */
static void add_trial(trials *t, trial at) {
    int64_t left = t->samples;
    for (int k = 0; k < t->m->n_kind; k++)
        if (k != t->fastest) left -= (int64_t)at.units[k] * t->m->count[k];
    if (t->samples && (left < 1 || left % t->m->count[t->fastest])) return;
    at.units[t->fastest] = t->samples ? (int)(left / t->m->count[t->fastest]) : UNITS;
    for (int k = 0; k < t->m->n_kind; k++)
        if (at.units[k] > UINT16_MAX) return;
    at.slowest = slowest_of(t->m, at.units);
    t->list[t->n++] = at;
}

/* Lists all numbers of units, for the kinds from k on, that are close to proportional to speed. */
static void list_trials(trials *t, int k, double per_speed, trial at) {
    if (k == t->fastest) k++;
    if (k >= t->m->n_kind) {
        add_trial(t, at);
        return;
    }
    const int middle = (int)lround(per_speed * t->m->of_kind[k]);
    for (int units = middle - AROUND; units <= middle + AROUND; units++) {
        if (units < 1) continue;
        at.units[k] = units;
        list_trials(t, k + 1, per_speed, at);
    }
}

static int by_slowest(const void *a, const void *b) {
    const trial *x = a, *y = b;
    return x->slowest < y->slowest ? -1 : x->slowest > y->slowest;
}

static hp_status consider(const refiner *r, const hp_strategy *s, hp_error *err) {
    hp_evaluation v;
    HP_TRY(hp_evaluate(r->eval, r->arena, s, HP_EVAL_RANK, &v, err));
    if (v.reject.code == HP_FEASIBLE && v.figures.step_s < (1 - GAIN) * r->best->figures.step_s) *r->best = v;
    return HP_OK;
}

static hp_status try_axis(const refiner *r, const hp_strategy *asked, int axis, const members *m,
                          hp_error *err) {
    const hp_eval_setup *o = hp_eval_get(r->eval);
    trials t = {.m = m, .list = HP_NEW(r->arena, trial, (2 * AROUND + 1) * (2 * AROUND + 1))};
    double speed = 0;
    for (int k = 0; k < m->n_kind; k++) {
        if (m->of_kind[k] > m->of_kind[t.fastest]) t.fastest = k;
        speed += m->of_kind[k] * m->count[k];
    }
    if (axis == HP_AXIS_N) t.samples = o->batch / hp_strategy_groups(asked);
    list_trials(&t, 0, t.samples ? (double)t.samples / speed : UNITS / m->of_kind[t.fastest],
                (trial){.slowest = 0});
    qsort(t.list, (size_t)t.n, sizeof *t.list, by_slowest);
    for (int i = 0; i < t.n && i < TRIES; i++) {
        hp_strategy other = *asked;
        other.by[axis].n = m->n;
        for (int k = 0; k < m->n; k++) other.by[axis].of[k] = (uint16_t)t.list[i].units[m->kind[k]];
        HP_TRY(consider(r, &other, err));
    }
    return HP_OK;
}

/* Number of members, equal in all stages that have several; 0: none. */
static int members_of(const hp_strategy *s, int axis) {
    const int32_t *degree = axis == HP_AXIS_H ? s->sp.rows : s->sp.cols;
    int n = 0;
    if (axis == HP_AXIS_N) return s->clients == 1 && s->sync.how == HP_SYNC_ALLREDUCE ? s->dp : 0;
    for (int i = 0; i < s->sp.n; i++) {
        if (degree[i] > 1 && n && degree[i] != n) return 0;
        if (degree[i] > 1) n = degree[i];
    }
    return n;
}

/* With a separate task list for each replica, the program grows. */
static bool is_worth_it(const hp_evaluation *e, int axis, int n) {
    return n > 1 && n <= HP_MAX_PROPORTIONS && (axis == HP_AXIS_N ? n : 1) * e->tasks <= HP_LARGE_TASKS;
}

hp_status hp_search_uneven(hp_eval *eval, hp_arena *arena, hp_evaluation *e, hp_error *err) {
    const refiner r = {eval, arena, e};
    for (int axis = HP_AXIS_N; axis <= HP_AXIS_W && hp_machine_mixed(hp_eval_get(eval)->machine); axis++) {
        const hp_strategy asked = e->strategy;
        members m = {.n = members_of(&asked, axis)};
        if (asked.by[axis].n || !is_worth_it(e, axis, m.n)) continue;
        add_speeds(&r, &asked, axis, &m);
        if (sort_kinds(&m)) HP_TRY(try_axis(&r, &asked, axis, &m, err));
    }
    return HP_OK;
}
