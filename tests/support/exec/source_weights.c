/* source_weights.c - a network's weights with true batch-norm statistics, in memory and in a file. */
#include "tests/support/exec/source_weights.h"

static double source_value(const hp_param *p, int i, uint64_t e) {
    const double n = hp_rng_normal(11, (uint64_t)i, e);
    switch (p->kind) {
    case HP_PARAM_CONV_W:
    case HP_PARAM_LINEAR_W:
        return n * sqrt(2.0 / (double)p->fan_in);
    case HP_PARAM_BN_VAR:
        return 0.1 + n * n;
    case HP_PARAM_BN_GAMMA:
    case HP_PARAM_FACTOR:
        return 1 + 0.3 * n;
    default:
        return 0.2 * n;
    }
}

source_weights source_draw(hp_arena *a, const hp_graph *g, hp_dtype dtype) {
    source_weights s = {.g = g, .value = HP_NEW(a, double *, g->n_param + 1), .dtype = dtype};
    int64_t most = 1;
    for (int i = 0; i < g->n_param; i++) {
        const hp_param *p = &g->param[i];
        s.value[i] = HP_NEW(a, double, p->count);
        most = p->count > most ? p->count : most;
        for (int64_t e = 0; e < p->count; e++) {
            const double v = source_value(p, i, (uint64_t)e);
            s.value[i][e] = dtype == HP_F32 ? (double)(float)v : v;
        }
    }
    s.narrow = HP_NEW(a, float, most);
    return s;
}

static const void *source_get(void *self, int param, hp_error *err) {
    source_weights *s = self;
    (void)err;
    if (s->dtype == HP_F64) return s->value[param];
    for (int64_t e = 0; e < s->g->param[param].count; e++) s->narrow[e] = (float)s->value[param][e];
    return s->narrow;
}

void source_save(const char *path, source_weights *s) {
    hp_error err = {0};
    const hp_weights_source source = {source_get, s};
    if (hp_weights_save(path, s->g, s->dtype, &source, 3, &err) != HP_OK) fail_msg("%s", err.text);
}

hp_graph *source_graph(hp_arena *a, const char *net, int image, int prec) {
    hp_error err = {0};
    hp_graph *g = NULL, *d = NULL;
    if (hp_net_build(a, net, image, image, hp_net_default_classes(net), &g, &err) != HP_OK)
        fail_msg("%s", err.text);
    const hp_deploy_options o = {.prec = prec};
    if (hp_graph_deploy(a, g, &o, &d, &err) != HP_OK) fail_msg("%s", err.text);
    return d;
}
