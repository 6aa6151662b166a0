/* slices.c - more ranks than cores: how a rank that waits gets back to its core.
 *
 * Ranks that wait poll and yield, so that they never sleep: the scheduler sees as many runnable processes on each core
 * and moves none, and each has its core, though another one may be idle. A core that nobody else computes on is
 * theirs at once. Where another rank computes, that one keeps it to the end of its time slice or until it waits
 * itself: what arrives meanwhile is noticed after half a slice, in the mean. Ranks that compute on one core share it
 * evenly (fluid.h); of slices longer than tasks that is the mean over who comes first. */
#include "sim/state.h"

#include <math.h>

typedef struct place {
    int32_t core;
    int32_t look; /* number of the last look that was scheduled */
    bool off;     /* it waits: the core is another's, if one wants it */
    bool pending; /* a look is under way */
    bool may;     /* it has the core now */
} place;

struct sim_slices {
    int64_t look_ns;
    int32_t n_core;
    place *of; /* per rank */
};

static bool crowded(const sim *s) {
    const hp_classes *c = s->classes;
    const int cores = s->machine->cores_per_node;
    if (!s->on_cores || s->options->slice_s <= 0 || cores < 1 || s->n_rank != hp_program_ranks(s->program))
        return false;
    int most = 0;
    int32_t *here = HP_NEW(s->arena, int32_t, c->n_node);
    for (int r = 0; r < s->n_rank; r++)
        if (++here[c->node[r]] > most) most = here[c->node[r]];
    return most > cores;
}

sim_slices *sim_slices_new(sim *s) {
    const int cores = s->machine->cores_per_node;
    if (!crowded(s)) return NULL;
    sim_slices *x = HP_NEW(s->arena, sim_slices, 1);
    x->look_ns = llround(s->options->slice_s * 0.5e9);
    x->n_core = s->classes->n_node * cores;
    x->of = HP_NEW(s->arena, place, s->n_rank);
    int32_t *here = HP_NEW(s->arena, int32_t, s->classes->n_node);
    for (int r = 0; r < s->n_rank; r++) {
        const int node = s->classes->node[r];
        x->of[r].core = node * cores + here[node]++ % cores;
    }
    return x;
}

int sim_slices_cores(const sim_slices *x) {
    return x ? x->n_core : 0;
}

int sim_slices_core(const sim_slices *x, int rank) {
    return x->of[rank].core;
}

static bool computes_on(const sim *s, int core, int but) {
    for (int r = 0; r < s->n_rank; r++)
        if (r != but && s->rank[r].running >= 0 && s->slices->of[r].core == core) return true;
    return false;
}

bool sim_slices_wait(sim *s, int rank) {
    sim_slices *x = s->slices;
    if (!x) return false;
    place *p = &x->of[rank];
    if (!p->off || p->may || !computes_on(s, p->core, rank)) return false;
    if (!p->pending) {
        p->pending = true;
        p->look = (p->look + 1) & 0xfffffff;
        hp_fluid_start(s->fluid, s->now_ns, x->look_ns, 0, NULL, owner_make(OWNER_CORE, rank, 1 + p->look));
    }
    return true;
}

static void come_back(sim *s, int rank) {
    s->slices->of[rank].pending = false;
    s->slices->of[rank].may = true;
    sim_wake(s, rank);
}

void sim_slices_look(sim *s, int rank, int32_t look) {
    const place *p = &s->slices->of[rank];
    if (p->pending && look == 1 + p->look) come_back(s, rank);
}

void sim_slices_use(sim *s, int rank, bool computes) {
    sim_slices *x = s->slices;
    if (!x) return;
    place *p = &x->of[rank];
    p->off = !computes;
    p->may = false;
    for (int r = 0; r < s->n_rank && !computes; r++)
        if (x->of[r].pending && x->of[r].core == p->core) come_back(s, r);
}
