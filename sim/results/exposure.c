/* exposure.c - sums over the tasks of one role. */
#include "sim/results/exposure.h"

#include <math.h>

static int kind_of(const hp_program *p, const hp_graph *g, const hp_role *r, int task) {
    const hp_task *t = &r->task[task];
    if (t->queue != 0) return HP_COST_OF_WAITS + (int)hp_sim_wait_of(p, r, task);
    if (t->layer < 0 || t->layer >= g->n_layer) return t->op;
    return HP_TASK_OPS + 2 * (int)g->layer[t->layer].op + (hp_task_infos[t->op].phase == HP_PHASE_BACKWARD);
}

/* Seconds by kind, and standard errors of measured and other costs. */
typedef struct sums {
    double seconds[HP_COST_KINDS], error[HP_COST_KINDS], guess[HP_COST_KINDS];
    double of_source[HP_SOURCE_GUESS + 1][HP_COST_KINDS]; /* seconds */
} sums;

static void add_tasks(const hp_program_costs *c, const hp_program *p, const hp_graph *g, int role, sums *s) {
    const hp_role *r = &p->role[role];
    for (int t = 0; t < r->n_task; t++) {
        const hp_cost *cost = &c->cost[role][t];
        const int kind = kind_of(p, g, r, t);
        s->seconds[kind] += cost->seconds;
        s->of_source[cost->source][kind] += cost->seconds;
        double *error = cost->source == HP_SOURCE_MEASURED ? s->error : s->guess;
        error[kind] += (cost->high - cost->seconds) / HP_INTERVAL_Z;
    }
}

/* Kinds first .. end - 1 make up this part of the step. */
static void set_part(const sums *s, int kind, double share, hp_exposure *out) {
    if (s->seconds[kind] <= 0) return;
    out->share[kind] = (float)share;
    out->sheet[kind] = (float)(share * s->of_source[HP_SOURCE_DATASHEET][kind] / s->seconds[kind]);
    out->guess[kind] = (float)(share * s->of_source[HP_SOURCE_GUESS][kind] / s->seconds[kind]);
    out->error[kind] = (float)(share * s->error[kind] / s->seconds[kind]);
    out->error[HP_COST_GUESSED + (kind >= HP_COST_OF_WAITS)] +=
        (float)(share * s->guess[kind] / s->seconds[kind]);
}

void hp_exposure_of(const hp_sim_costs *costs, const hp_program *p, const hp_graph *g, int role,
                    const hp_sim_result *r, hp_exposure *out) {
    sums s = {0};
    double computing = 0;
    *out = (hp_exposure){0};
    add_tasks(costs->self, p, g, role, &s);
    for (int k = 0; k < HP_COST_OF_WAITS; k++) computing += s.seconds[k];
    const double rest = fmax(0, 1 - r->exposed_comm);
    for (int k = 0; k < HP_COST_OF_WAITS && computing > 0; k++)
        set_part(&s, k, rest * s.seconds[k] / computing, out);
    for (int k = 0; k < HP_SIM_WAITS; k++) set_part(&s, HP_COST_OF_WAITS + k, r->wait[k], out);
}

static void name_kind(int kind, char *out, size_t n) {
    static const char *const waits[HP_SIM_WAITS] = {"halo exchange", "batch-norm statistics",
                                                    "stage transfers", "gradient all-reduce",
                                                    "end of the step"};
    const int layer = kind - HP_TASK_OPS;
    if (kind >= HP_COST_OF_WAITS)
        snprintf(out, n, "%s", waits[kind - HP_COST_OF_WAITS]);
    else if (layer >= 0)
        snprintf(out, n, "%s %s", layer % 2 ? "bwd" : "fwd", hp_layer_infos[layer / 2].name);
    else
        snprintf(out, n, "%s", hp_task_infos[kind].name);
}

int hp_exposure_unmeasured(const hp_exposure *x, double least, hp_unmeasured out[HP_COST_KINDS]) {
    int n = 0;
    for (int k = 0; k < HP_COST_KINDS; k++) {
        hp_unmeasured one = {.guess = (double)x->guess[k], .sheet = (double)x->sheet[k]};
        int at = n;
        if (one.guess + one.sheet <= 0 || one.guess + one.sheet < least) continue;
        name_kind(k, one.task, sizeof one.task);
        for (; at && out[at - 1].guess + out[at - 1].sheet < one.guess + one.sheet; at--)
            out[at] = out[at - 1];
        out[at] = one;
        n++;
    }
    return n;
}

double hp_exposure_variance(const hp_exposure *x) {
    static const hp_exposure none;
    return hp_exposure_apart(x, &none);
}

double hp_exposure_apart(const hp_exposure *a, const hp_exposure *b) {
    double sum = 0;
    for (int k = 0; k < HP_COST_ERRORS; k++) {
        const double apart = (double)a->error[k] - (double)b->error[k];
        sum += apart * apart;
    }
    return sum;
}

double hp_exposure_distance(const hp_exposure *a, const hp_exposure *b) {
    double sum = 0;
    for (int k = 0; k < HP_COST_KINDS; k++) sum += fabs((double)a->share[k] - (double)b->share[k]);
    return fmin(1, sum / 2);
}
