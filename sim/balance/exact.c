/* exact.c - the optimal configuration: by a dynamic programme over (first unit, places used of each class),
 * and by trying every one.
 *
 * The programme: least(u, used) is the slowest stage of the units from u on, with the remaining places. As a
 * stage's end moves on, the stage takes longer and the rest less, so the best end lies where they cross and
 * is found by bisection. O(units x states x classes x log units); states: the product of (places + 1). */
#include "sim/balance/methods.h"

#include <math.h>

typedef struct programme {
    const hp_chain *c;
    double *sum[HP_BALANCE_CLASSES]; /* seconds of the units before u */
    double *bytes;                   /* likewise; NULL: memory does not matter */
    int states;
    double *least; /* [unit][state] */
    int16_t *end;  /* best end of the stage that begins there; */
    int8_t *class; /* and on which class */
} programme;

static int stride_of(const hp_chain *c, int class) {
    int stride = 1;
    for (int k = 0; k < class; k++) stride *= c->places[k] + 1;
    return stride;
}

static int used_of(const hp_chain *c, int state, int class) {
    return state / stride_of(c, class) % (c->places[class] + 1);
}

static double stage(const programme *p, int class, int first, int end) {
    if (p->bytes && p->bytes[end] - p->bytes[first] > p->c->memory[class]) return INFINITY;
    return p->sum[class][end] - p->sum[class][first];
}

static double rest(const programme *p, int unit, int state) {
    return unit == p->c->n_unit ? 0 : p->least[(size_t)unit * (size_t)p->states + (size_t)state];
}

/* The first end at which the stage takes at least as long as the rest; the optimum is this one or the one
 * before. */
static int crossing(const programme *p, int class, int first, int next) {
    int low = first + 1, high = p->c->n_unit;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (stage(p, class, first, middle) >= rest(p, middle, next))
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static void solve(programme *p, int unit, int state) {
    const size_t at = (size_t)unit * (size_t)p->states + (size_t)state;
    p->least[at] = INFINITY;
    p->end[at] = (int16_t)p->c->n_unit;
    for (int k = 0; k < p->c->n_class; k++) {
        if (used_of(p->c, state, k) == p->c->places[k]) continue;
        const int next = state + stride_of(p->c, k), cross = crossing(p, k, unit, next);
        for (int end = cross > unit + 1 ? cross - 1 : cross; end <= cross; end++) {
            const double most = fmax(stage(p, k, unit, end), rest(p, end, next));
            if (!(most < p->least[at])) continue;
            p->least[at] = most;
            p->end[at] = (int16_t)end;
            p->class[at] = (int8_t)k;
        }
    }
}

static double *prefix(hp_arena *arena, const double *of, int n) {
    double *sum = HP_NEW(arena, double, n + 1);
    for (int u = 0; u < n; u++) sum[u + 1] = sum[u] + of[u];
    return sum;
}

static void read_off(const programme *p, hp_balance *b) {
    const hp_chain *c = p->c;
    *b = (hp_balance){0};
    for (int unit = 0, state = 0; unit < c->n_unit;) {
        const size_t at = (size_t)unit * (size_t)p->states + (size_t)state;
        const int k = p->class[at], used = used_of(c, state, k);
        int first_place = 0;
        for (int j = 0; j < k; j++) first_place += c->places[j];
        b->units[b->n_stage] = p->end[at] - unit;
        b->place[b->n_stage++] = first_place + used;
        unit = p->end[at];
        state += stride_of(c, k);
    }
}

void balance_exact(hp_balance_run *r) {
    const hp_chain *c = r->chain;
    hp_arena *scratch = hp_arena_new();
    programme p = {.c = c, .states = stride_of(c, c->n_class)};
    const size_t cells = (size_t)c->n_unit * (size_t)p.states;
    for (int k = 0; k < c->n_class; k++) p.sum[k] = prefix(scratch, c->seconds[k], c->n_unit);
    if (c->bytes) p.bytes = prefix(scratch, c->bytes, c->n_unit);
    p.least = HP_NEW(scratch, double, cells);
    p.end = HP_NEW(scratch, int16_t, cells);
    p.class = HP_NEW(scratch, int8_t, cells);
    for (int unit = c->n_unit - 1; unit >= 0; unit--)
        for (int state = 0; state < p.states; state++) solve(&p, unit, state);
    hp_balance b;
    double seconds;
    if (!isinf(p.least[0])) {
        read_off(&p, &b);
        hp_balance_try(r, &b, &seconds);
    }
    hp_arena_free(scratch);
}

/* --- every configuration, places of a class in their order --- */

typedef struct enumeration {
    hp_balance_run *r;
    hp_balance b;
    int used[HP_BALANCE_CLASSES];
} enumeration;

static bool extend(enumeration *e, int unit) {
    const hp_chain *c = e->r->chain;
    double seconds;
    if (unit == c->n_unit) return hp_balance_try(e->r, &e->b, &seconds);
    for (int k = 0, first_place = 0; k < c->n_class; first_place += c->places[k++]) {
        if (e->used[k] == c->places[k]) continue;
        const int s = e->b.n_stage++;
        e->b.place[s] = first_place + e->used[k]++;
        bool more = true;
        for (int n = 1; n <= c->n_unit - unit && more; n++) {
            e->b.units[s] = n;
            more = extend(e, unit + n);
        }
        e->used[k]--;
        e->b.n_stage--;
        if (!more) return false;
    }
    return true;
}

void balance_exhaustive(hp_balance_run *r) {
    enumeration e = {.r = r};
    extend(&e, 0);
}
