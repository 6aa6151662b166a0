/* norms.c - how far a GPU's training tasks are from the reference, as numbers: relative norms |a - b| / |b|
 * of outputs and gradients, one JSON object per drawn layer and per line, so that what was measured before a
 * crash or a time limit is there. The laws that bound every element are tests/standin/test_train.c's.
 *
 *   norms [OPERATOR [ROUNDS]]      conv, convt, linear, bn, pool, point; all, 6 of each */
#include "exec/cuda/runtime/cuda_runtime_device.h"
#include "networks/graph/acts.h"
#include "tests/support/exec/draw_layer.h"

#include <stdio.h>

typedef struct kind {
    const char *name;
    draw (*draw)(uint64_t round);
    double low, high;
    bool narrow; /* in bf16 too */
} kind;

static const kind KINDS[] = {{"conv", draw_conv, -1, 1, true},     {"convt", draw_convt, -1, 1, true},
                             {"linear", draw_linear, -1, 1, true}, {"bn", draw_bn, -2, 2, true},
                             {"pool", draw_pool, -4, 8, false},    {"point", draw_point, -4, 8, false}};

typedef struct pair {
    rig *gpu, *ref;
} pair;

/* --- the same layer and numbers on both --- */

static rig *build_in(const hp_device_ops *ops, const draw *d, hp_store store) {
    draw q = *d;
    for (int i = 0; i < HP_MAX_IN; i++) q.in[i].store = store;
    q.out.store = store;
    return build(ops, &q);
}

/* What the GPU rounds to bf16 is rounded in both. */
static void share(const pair *p, int32_t gpu, int32_t ref, bool narrow) {
    for (int64_t i = 0; gpu >= 0 && i < rig_elems(p->gpu, gpu); i++) {
        const double v = rig_get(p->gpu, gpu, i), rounded = narrow ? (double)from_bf16(to_bf16((float)v)) : v;
        rig_set(p->gpu, gpu, i, rounded);
        rig_set(p->ref, ref, i, rounded);
    }
}

static pair pair_new(const kind *k, const draw *d, hp_store store) {
    const pair p = {build_in(&hp_device_cuda, d, store), build(&hp_device_ref, d)};
    fill(p.gpu, k->low, k->high);
    for (int32_t b = HP_BUF_WEIGHTS; b <= HP_BUF_STATE; b++) share(&p, b, b, store == HP_STORE_BF16);
    for (int i = 0; i < d->layer.n_in; i++) share(&p, p.gpu->x[i], p.ref->x[i], false);
    share(&p, p.gpu->dy, p.ref->dy, false);
    return p;
}

static hp_status run_tasks(rig *r, hp_error *err) {
    static const int TASKS[] = {RIG_PACK, RIG_FWD, RIG_BWDW, RIG_BWD};
    HP_TRY(rig_open(r, err));
    for (int i = 0; i < 4; i++) {
        if (r->task[TASKS[i]].op == HP_TASK_LOAD) continue;
        const hp_status s = rig_run(r, TASKS[i]);
        if (s != HP_OK) return hp_fail(err, s, "task %d failed", TASKS[i]);
    }
    return HP_OK;
}

/* --- comparing --- */

static void print_norm(const pair *p, const char *what, int32_t gpu, int32_t ref) {
    double apart = 0, size = 0;
    if (gpu < 0 || rig_elems(p->gpu, gpu) == 0) return;
    for (int64_t i = 0; i < rig_elems(p->gpu, gpu); i++) {
        const double a = rig_get(p->gpu, gpu, i), b = rig_get(p->ref, ref, i);
        apart += (a - b) * (a - b);
        size += b * b;
    }
    const double norm = size > 0 ? sqrt(apart / size) : sqrt(apart);
    if (isfinite(norm))
        printf(",\"%s\":%.3g", what, norm);
    else
        printf(",\"%s\":null", what); /* JSON has no number for it */
}

static void print_layer(const draw *d) {
    const hp_layer *l = &d->layer;
    printf(",\"layer\":\"op %d n%d %dx%dx%d -> %dx%dx%d k%dx%d s%dx%d p%dx%d d%d g%d act %d\"", l->op,
           (int)d->samples, d->in[0].h, d->in[0].w, d->in[0].c, d->out.h, d->out.w, d->out.c, l->window.kh,
           l->window.kw, l->window.stride_h, l->window.stride_w, l->window.pad_h, l->window.pad_w,
           l->window.dil_h, l->groups, l->act);
}

static bool show(const kind *k, const draw *d, uint64_t round, hp_store store) {
    const pair p = pair_new(k, d, store);
    hp_error err = {.text = ""};
    hp_status s = run_tasks(p.gpu, &err);
    if (s == HP_OK) s = run_tasks(p.ref, &err);
    printf("{\"op\":\"%s\",\"prec\":\"%s\",\"round\":%d", k->name, store == HP_STORE_BF16 ? "bf16" : "fp32",
           (int)round);
    print_layer(d);
    if (s == HP_OK) {
        print_norm(&p, "y", p.gpu->y, p.ref->y);
        for (int i = 0; i < d->layer.n_in; i++)
            print_norm(&p, i ? "dx_more" : "dx", p.gpu->dx[i], p.ref->dx[i]);
        if (p.gpu->role.trained_elems) print_norm(&p, "gradients", HP_BUF_GRADS, HP_BUF_GRADS);
    } else {
        for (char *c = err.text; *c; c++)
            if (*c == '"' || *c == '\\' || *c < ' ') *c = '\'';
        printf(",\"error\":\"%s\"", err.text);
    }
    printf("}\n");
    fflush(stdout);
    rig_free(p.gpu);
    rig_free(p.ref);
    return s == HP_OK;
}

/* Windows that leave a stride or more of the map unread are not made by any network. */
static bool fits(int in, int out, int kernel, int stride, int pad, int dilation) {
    const int begin = (out - 1) * stride - pad, end = begin + (kernel - 1) * dilation + 1;
    return begin < in && in - end < stride;
}

static bool legal(const draw *d) {
    const hp_layer *l = &d->layer;
    if (l->op == HP_BN) return d->samples * d->out.h * d->out.w >= 32;
    return l->op != HP_CONV ||
           (fits(d->in[0].h, d->out.h, l->window.kh, l->window.stride_h, l->window.pad_h, l->window.dil_h) &&
            fits(d->in[0].w, d->out.w, l->window.kw, l->window.stride_w, l->window.pad_w, l->window.dil_w));
}

static bool show_kind(const kind *k, int rounds) {
    bool good = true;
    for (uint64_t round = 0; rounds > 0; round++) {
        draw d = k->draw(round);
        if (!legal(&d)) continue;
        d.layer.act = HP_ACT_NONE; /* no kinks: a mask may differ by rounding */
        d.flags = 0;
        good &= show(k, &d, round, HP_STORE_REAL);
        if (k->narrow) good &= show(k, &d, round, HP_STORE_BF16);
        rounds--;
    }
    return good;
}

int main(int argc, char **argv) {
    const char *only = argc > 1 ? argv[1] : "all";
    const int rounds = argc > 2 ? atoi(argv[2]) : 6;
    bool good = true;
    for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS; i++)
        if (strcmp(only, "all") == 0 || strcmp(only, KINDS[i].name) == 0)
            good &= show_kind(&KINDS[i], rounds);
    return good ? 0 : 1;
}
