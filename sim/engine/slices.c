/* slices.c - more ranks than cores: which ranks share a core, and how a waiting rank gets back to one.
 *
 * Waiting ranks poll and yield but never sleep, so the scheduler sees equally many runnable processes on each
 * core and cannot tell which ones compute. Each rank sits on some core, no core has two ranks more than
 * another, and chance decides who sits together, which changes as the scheduler balances. Computing ranks on
 * one core share it; beside a rank that only waits, a rank has the whole core. Averaged over all placements,
 * k computing ranks have as many cores as they are expected to sit on, and share those evenly.
 *
 * A rank that waits beside a computing one gives its core away at each look, for a whole time slice (a
 * yielding process queues up at the back); alone on its core, it looks at once. An arrival is thus noticed
 * after a slice times the probability that somebody computes on the rank's core. */
#include "sim/engine/slices.h"

#include "sim/engine/state.h"

#include <math.h>

typedef struct place {
    int32_t look; /* number of the last scheduled look */
    bool off;     /* it waits; its core is free for others */
    bool pending; /* a look is scheduled */
    bool may;     /* it has the core now */
} place;

struct sim_slices {
    double slice_ns;
    int32_t *ranks; /* per node */
    place *of;      /* per rank */
};

/* --- arithmetic --- */

/* Probability that `seats` given seats are all free if k of n are taken at random. */
static double none_of(int seats, int n, int k) {
    double p = 1;
    for (int i = 0; i < k; i++) p *= n - seats - i > 0 ? (double)(n - seats - i) / (n - i) : 0;
    return p;
}

static int seats_of(int ranks, int cores, int core) {
    return ranks / cores + (core < ranks % cores);
}

double sim_slices_busy(int ranks, int cores, int computing) {
    double sum = 0;
    for (int c = 0; c < cores; c++) sum += 1 - none_of(seats_of(ranks, cores, c), ranks, computing);
    return sum;
}

double sim_slices_beside(int ranks, int cores, int computing) {
    double sum = 0;
    for (int c = 0; c < cores; c++) {
        const int seats = seats_of(ranks, cores, c);
        if (seats > 0) sum += (double)seats / ranks * (1 - none_of(seats - 1, ranks - 1, computing));
    }
    return sum;
}

/* --- a simulation --- */

static bool crowded(const sim *s, const int32_t *ranks) {
    int most = 0;
    for (int n = 0; n < s->classes->place[HP_PLACE_NODE].n; n++) most = ranks[n] > most ? ranks[n] : most;
    return most > s->machine->cores_per_node;
}

sim_slices *sim_slices_new(sim *s) {
    if (!s->on_cores || s->options->slice_s <= 0 || s->machine->cores_per_node < 1 ||
        s->n_rank != hp_program_ranks(s->program))
        return NULL;
    int32_t *ranks = HP_NEW(s->arena, int32_t, s->classes->place[HP_PLACE_NODE].n);
    for (int r = 0; r < s->n_rank; r++) ranks[s->classes->place[HP_PLACE_NODE].of[r]]++;
    if (!crowded(s, ranks)) return NULL;
    sim_slices *x = HP_NEW(s->arena, sim_slices, 1);
    *x = (sim_slices){s->options->slice_s * 1e9, ranks, HP_NEW(s->arena, place, s->n_rank)};
    return x;
}

void sim_slices_open(const sim *s) {
    const int cores = s->machine->cores_per_node;
    for (int node = 0; s->slices && node < s->classes->place[HP_PLACE_NODE].n; node++) {
        const int n = s->slices->ranks[node];
        double *busy = HP_NEW(s->arena, double, n + 1);
        for (int k = 1; k <= n; k++) busy[k] = sim_slices_busy(n, cores, k);
        hp_fluid_capacities(s->fluid, sim_resource(s, RES_CORES, node), busy);
    }
}

static int computing_beside(const sim *s, int rank) {
    int n = 0;
    for (int r = 0; r < s->n_rank; r++)
        n += r != rank && s->rank[r].running >= 0 &&
             s->classes->place[HP_PLACE_NODE].of[r] == s->classes->place[HP_PLACE_NODE].of[rank];
    return n;
}

bool sim_slices_wait(sim *s, int rank) {
    sim_slices *x = s->slices;
    if (!x) return false;
    place *p = &x->of[rank];
    const int computing = !p->off || p->may ? 0 : computing_beside(s, rank);
    if (computing == 0) return false;
    if (!p->pending) {
        const double beside = sim_slices_beside(x->ranks[s->classes->place[HP_PLACE_NODE].of[rank]],
                                                s->machine->cores_per_node, computing);
        p->pending = true;
        p->look = (p->look + 1) & 0xfffffff;
        hp_fluid_start(s->fluid, s->now_ns, 0, llround(beside * x->slice_ns), 0, NULL,
                       owner_make(OWNER_CORE, rank, 1 + p->look));
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
    if (computes || computing_beside(s, rank) > 0) return;
    for (int r = 0; r < s->n_rank; r++)
        if (x->of[r].pending &&
            s->classes->place[HP_PLACE_NODE].of[r] == s->classes->place[HP_PLACE_NODE].of[rank])
            come_back(s, r);
}
