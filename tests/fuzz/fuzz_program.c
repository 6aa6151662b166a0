/* fuzz_program.c - a stored task program with altered numbers, as by a stranger who knows how to hash it: the
 * checker refuses it, or it runs to its end on the virtual clock. The input is a list of edits, 7 bytes each,
 * to a sound program: first which program, then where and what. */
#include "plan/check/check.h"
#include "plan/store/blob.h"
#include "plan/store/store.h"
#include "sim/engine/sim.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_PARTS = 512, EDIT = 7, MOST_EDITS = 16 };

typedef struct part {
    int role;
    char name[16];
    uint8_t *data;
    size_t size;
} part;

typedef struct base {
    hp_arena *arena; /* for as long as the fuzzer runs */
    hp_plan plan;
    part part[MOST_PARTS];
    int n;
} base;

static hp_status keep_part(void *self, int role, const char *name, const void *data, size_t size,
                           hp_error *err) {
    base *b = self;
    part *p = &b->part[b->n++];
    (void)err;
    if (b->n > MOST_PARTS) abort();
    *p = (part){.role = role, .data = malloc(size + 1), .size = size};
    snprintf(p->name, sizeof p->name, "%s", name);
    if (size) memcpy(p->data, data, size);
    return HP_OK;
}

static void make_base(base *b, const char *strategy, hp_mode mode) {
    hp_error err = {0};
    hp_arena *a = b->arena = hp_arena_new();
    b->plan = (hp_plan){.net = "cnn",
                        .image_h = 12,
                        .image_w = 12,
                        .classes = 3,
                        .mode = mode,
                        .batch = 8,
                        .device = &hp_devices[HP_DEVICE_CPU]};
    if (hp_machine_load("thesis-a100", &b->plan.machine, &err) != HP_OK ||
        hp_strategy_parse(strategy, &b->plan.strategy, &err) != HP_OK ||
        hp_plan_build(a, &b->plan, NULL, &err) != HP_OK ||
        hp_program_visit(b->plan.program, b->plan.graph, keep_part, b, &err) != HP_OK) {
        fprintf(stderr, "%s\n", err.text);
        abort();
    }
}

static base *bases(int *n) {
    static const struct {
        const char *strategy;
        hp_mode mode;
    } PLAN[] = {{"dp=2", HP_MODE_TRAIN},
                {"stages=2,micro=2,sched=1f1b", HP_MODE_TRAIN},
                {"sp=2x1,halo=2", HP_MODE_TRAIN},
                {"dp=2,zero=3", HP_MODE_TRAIN},
                {"sp=2x2", HP_MODE_INFER}};
    static base all[sizeof PLAN / sizeof *PLAN];
    *n = sizeof PLAN / sizeof *PLAN;
    for (int i = 0; all[0].n == 0 || (i > 0 && i < *n && all[i].n == 0); i++)
        make_base(&all[i], PLAN[i].strategy, PLAN[i].mode);
    return all;
}

/* Edited parts, which fall back to the base's. */
static hp_status fetch_part(void *self, int role, const char *name, void *data, size_t size, hp_error *err) {
    const base *b = self;
    for (int i = 0; i < b->n; i++) {
        const part *p = &b->part[i];
        if (p->role != role || strcmp(p->name, name) != 0) continue;
        if (p->size != size) break;
        if (size && data) memcpy(data, p->data, size);
        return HP_OK;
    }
    return hp_fail(err, HP_EDATA, "no part %s of %zu bytes", name, size);
}

/* One number, or a part of it, becomes another: flipped, added to, or set. */
static void edit(const base *b, const uint8_t *d) {
    const part *p = &b->part[(d[0] | d[1] << 8) % b->n];
    if (!p->size) return;
    const size_t at = (size_t)(d[2] | d[3] << 8) % p->size;
    if (d[4] % 3 == 0) p->data[at] ^= (uint8_t)(1 << d[5] % 8);
    if (d[4] % 3 == 1) p->data[at] = (uint8_t)(p->data[at] + d[5]);
    if (d[4] % 3 == 2) memset(p->data + at, d[6], p->size - at < 4 ? p->size - at : 4);
}

static double a_microsecond(void *self, const hp_program *p, const hp_graph *g, int rank, int task) {
    (void)self, (void)p, (void)g, (void)rank, (void)task;
    return 1e-6;
}

static void try_program(hp_arena *a, const base *b) {
    const hp_sim_costs costs = {.seconds = a_microsecond};
    const hp_sim_options o = {.straggler_rank = -1};
    hp_program *p;
    hp_sim_result r;
    hp_error err = {0};
    hp_status s = hp_program_fetch(a, b->plan.graph, fetch_part, (void *)(uintptr_t)b, &p, &err);
    if (s == HP_OK) s = hp_program_check(p, b->plan.graph, &err);
    if (s != HP_OK && !err.text[0]) abort();
    if (s == HP_OK && hp_program_ranks(p) <= 64 &&
        hp_sim_run(a, p, b->plan.graph, &b->plan.machine, &costs, &o, &r, &err) != HP_OK) {
        fprintf(stderr, "%s\n", err.text);
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    int n;
    base *all = bases(&n);
    if (size < 1) return 0;
    const base *b = &all[data[0] % n];
    uint8_t *before[MOST_PARTS];
    for (int i = 0; i < b->n; i++) {
        before[i] = malloc(b->part[i].size + 1);
        memcpy(before[i], b->part[i].data, b->part[i].size);
    }
    for (size_t at = 1, k = 0; at + EDIT <= size && k < MOST_EDITS; at += EDIT, k++) edit(b, data + at);
    hp_arena *a = hp_arena_new();
    try_program(a, b);
    hp_arena_free(a);
    for (int i = 0; i < b->n; i++) {
        memcpy(b->part[i].data, before[i], b->part[i].size);
        free(before[i]);
    }
    return 0;
}
