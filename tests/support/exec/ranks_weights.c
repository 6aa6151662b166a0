/* ranks_weights.c - the parameters of many ranks and those of the whole network. */
#include "tests/support/exec/ranks_weights.h"

int64_t ranks_param_elems(const hp_graph *g) {
    int64_t n = 0;
    for (int i = 0; i < g->n_param; i++) n += g->param[i].count;
    return n;
}

static double ranks_get(hp_dtype t, const void *p, int64_t i) {
    return t == HP_F64 ? ((const double *)p)[i] : (double)((const float *)p)[i];
}

void ranks_put(hp_dtype t, void *p, int64_t i, double v) {
    if (t == HP_F64) ((double *)p)[i] = v;
    if (t == HP_F32) ((float *)p)[i] = (float)v;
    if (t == HP_BF16) ((uint16_t *)p)[i] = to_bf16((float)v);
    if (t == HP_F16) ((uint16_t *)p)[i] = to_f16((float)v);
}

double ranks_param_get(const hp_weights *w, int i, int64_t e) {
    const hp_param_place *at = &w->role->place[i];
    const void *from = hp_param_trained(&w->graph->param[i]) ? w->weights : w->state;
    return ranks_get((hp_dtype)w->dtype, from, at->offset + e - at->first);
}

void ranks_param_fill(const hp_weights *w, const double *whole) {
    for (int i = 0; i < w->graph->n_param; whole += w->graph->param[i].count, i++) {
        const hp_param_place *at = &w->role->place[i];
        const bool trained = hp_param_trained(&w->graph->param[i]);
        if (!at->here || (!trained && !hp_weights_start(w, at))) continue;
        for (int64_t e = 0; e < at->count; e++)
            ranks_put((hp_dtype)w->dtype, trained ? w->weights : w->state, at->offset + e,
                      whole[at->first + e]);
    }
}

/* --- assembly --- */

typedef struct ranks_whole {
    const hp_program *p;
    const hp_graph *g;
    const hp_weights *rank; /* weights of each rank */
    double *value;          /* values of the current parameter */
    int *home;              /* per element: the rank that it was taken from, -1: none */
} ranks_whole;

/* In training, statistics are the sum over homes and replicas; with bn=all, replicas have equal ones. */
static bool ranks_counts(const ranks_whole *w, int rank, int param) {
    const bool first = rank < w->p->n_role;
    if (!w->rank[rank].role->place[param].here) return false;
    if (!(w->rank[rank].role->place[param].here & HP_HOME)) return false;
    return first ||
           (!hp_param_trained(&w->g->param[param]) && w->p->bn != HP_BN_ALL && w->p->mode == HP_MODE_TRAIN);
}

static hp_status ranks_take(ranks_whole *w, int rank, int param, hp_error *err) {
    const hp_param_place *at = &w->rank[rank].role->place[param];
    const bool trained = hp_param_trained(&w->g->param[param]), infer = w->p->mode == HP_MODE_INFER;
    for (int64_t e = at->first; e < at->first + at->count; e++) {
        const double v = ranks_param_get(&w->rank[rank], param, e);
        if (trained && w->home[e] >= 0)
            return hp_fail(err, HP_EINTERNAL, "element %lld of %s has two homes: ranks %d and %d",
                           (long long)e, w->g->param[param].name, w->home[e], rank);
        w->value[e] = trained || infer ? v : w->value[e] + v;
        w->home[e] = rank;
    }
    return HP_OK;
}

/* Checks that all holders of a trained element have the same bits. */
static hp_status ranks_compare(const ranks_whole *w, int rank, int param, hp_error *err) {
    const hp_param_place *at = &w->rank[rank].role->place[param];
    if (!at->here) return HP_OK;
    for (int64_t e = at->first; e < at->first + at->count; e++) {
        const double v = ranks_param_get(&w->rank[rank], param, e);
        if (memcmp(&v, &w->value[e], sizeof v) != 0)
            return hp_fail(err, HP_EINTERNAL, "element %lld of %s is %.17g on rank %d but %.17g on rank %d",
                           (long long)e, w->g->param[param].name, v, rank, w->value[e], w->home[e]);
    }
    return HP_OK;
}

static hp_status ranks_one_param(ranks_whole *w, int param, hp_error *err) {
    const int n = hp_program_ranks(w->p);
    const hp_param *about = &w->g->param[param];
    for (int64_t e = 0; e < about->count; e++) w->value[e] = 0, w->home[e] = -1;
    for (int r = 0; r < n; r++)
        if (ranks_counts(w, r, param)) HP_TRY(ranks_take(w, r, param, err));
    for (int64_t e = 0; e < about->count; e++)
        if (w->home[e] < 0)
            return hp_fail(err, HP_EINTERNAL, "element %lld of %s has no home", (long long)e, about->name);
    for (int r = 0; r < n && hp_param_trained(about); r++) HP_TRY(ranks_compare(w, r, param, err));
    return HP_OK;
}

hp_status ranks_param_whole(const hp_program *p, const hp_graph *g, const hp_weights *rank, double *whole,
                            hp_error *err) {
    ranks_whole w = {.p = p, .g = g, .rank = rank, .value = whole};
    hp_status s = HP_OK;
    w.home = calloc((size_t)ranks_param_elems(g) + 1, sizeof *w.home);
    HP_ASSERT(w.home);
    for (int i = 0; s == HP_OK && i < g->n_param; w.value += g->param[i].count, i++)
        s = ranks_one_param(&w, i, err);
    free(w.home);
    return s;
}
