/* bench_infer_conv.c - every distinct matrix layer of a deployed network on one thread: how long, how fast,
 * and what oneDNN takes for the same products. usage: bench_infer_conv NET IMAGE fp32|bf16|fp16|int8 [BATCH
 * [SECONDS]] */
#include "exec/device/cpu/cpu_matrix.h"
#include "networks/deploy/deploy.h"
#include "plan/memory/memory_device.h"
#include "networks/graph/layer.h"
#include "tests/support/plan/built/whole_shape.h"

#include <oneapi/dnnl/dnnl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct bench {
    hp_arena *arena;
    hp_graph *graph;
    hp_constants *constants;
    hp_program program;
    hp_role role;
    hp_device_config config;
    hp_infer infer;
    int64_t samples;
    double seconds; /* per layer */
    dnnl_engine_t engine;
    dnnl_stream_t stream;
} bench;

/* CPU time of this thread: other processes on the machine disturb it least. */
static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Median of repeated calls, for about b->seconds. */
typedef void call_fn(void *self);
static double median_of(const bench *b, call_fn *call, void *self) {
    enum { MOST = 1000 };
    double took[MOST], begin = now_s();
    int n = 0;
    call(self);
    do {
        const double t = now_s();
        call(self);
        took[n++] = now_s() - t;
    } while (n < MOST && (n < 3 || now_s() - begin < b->seconds));
    qsort(took, (size_t)n, sizeof *took, by_value);
    return took[n / 2];
}

static void *lines(int64_t bytes) {
    void *at = aligned_alloc(4096, (size_t)(bytes + 4095) / 4096 * 4096 + 4096);
    HP_ASSERT(at);
    memset(at, 1, (size_t)bytes); /* as floats: tiny, not denormal */
    return at;
}

/* --- ours --- */

typedef struct ours {
    hp_bound b;
    hp_infer_kernel k;
} ours;

static void run_ours(void *self) {
    ours *o = self;
    o->k.run(o->k.self, &o->b, NULL);
}

static void bind(bench *b, int layer, ours *o) {
    const hp_graph *g = b->graph;
    const hp_layer *l = &g->layer[layer];
    const hp_shape s = whole_shape(g, layer, b->samples);
    hp_buffer *pack = &b->role.buffer[layer];
    *o = (ours){.b = {.layer = l, .layer_id = layer, .n_in = l->n_in, .shape = s}};
    o->b.stored.x[0] = hp_tensor_dtype(&g->tensor[l->in[0]], HP_F32);
    o->b.stored.y = hp_tensor_dtype(&g->tensor[l->out], HP_F32);
    o->b.out_elems = b->samples * hp_tensor_elems(g, l->out);
    o->b.x[0] = lines(b->samples * hp_tensor_elems(g, l->in[0]) * hp_dtype_bytes(o->b.stored.x[0]));
    o->b.y = lines(o->b.out_elems * hp_dtype_bytes(o->b.stored.y));
    pack->bytes = hp_infer_pack_bytes(g, layer, &s, HP_F32);
    o->b.pack.forward = lines(pack->bytes);
    o->b.scratch.bytes = hp_infer_scratch_bytes(g, layer, &s, HP_F32);
    o->b.scratch.at = lines(o->b.scratch.bytes);
}

static void unbind(ours *o) {
    free(o->b.x[0]);
    free(o->b.y);
    free(o->b.pack.forward);
    free(o->b.scratch.at);
}

/* --- oneDNN's --- */

typedef struct theirs {
    const bench *b;
    dnnl_primitive_t run;
    dnnl_exec_arg_t arg[4];
    char name[64];
} theirs;

static void run_theirs(void *self) {
    theirs *t = self;
    dnnl_primitive_execute(t->run, t->b->stream, 4, t->arg);
}

static dnnl_data_type_t type_of(hp_dtype t) {
    static const dnnl_data_type_t types[HP_DTYPES] = {
        [HP_F32] = dnnl_f32, [HP_U8] = dnnl_u8, [HP_BF16] = dnnl_bf16};
    return types[t];
}

static dnnl_status_t describe(const ours *o, dnnl_memory_desc_t d[4], dnnl_convolution_desc_t *op) {
    const hp_shape *s = &o->b.shape;
    const bool bytes = o->b.stored.x[0] == HP_U8;
    const dnnl_dims_t x = {s->n, s->ic, s->ih, s->iw}, y = {s->n, s->oc, s->oh, s->ow}, bias = {s->oc};
    const dnnl_dims_t w = {s->oc, s->ic, s->kh, s->kw},
                      grouped = {s->groups, s->oc / s->groups, s->ic / s->groups, s->kh, s->kw};
    const dnnl_dims_t stride = {s->sh, s->sw}, dil = {s->dh - 1, s->dw - 1}, before = {s->ph, s->pw},
                      after = {(s->oh - 1) * s->sh + (s->kh - 1) * s->dh + 1 - s->ih - s->ph,
                               (s->ow - 1) * s->sw + (s->kw - 1) * s->dw + 1 - s->iw - s->pw};
    dnnl_memory_desc_init_by_tag(&d[0], 4, x, type_of(o->b.stored.x[0]), dnnl_nhwc);
    dnnl_memory_desc_init_by_tag(&d[1], 4, y, type_of(o->b.stored.y), dnnl_nhwc);
    dnnl_memory_desc_init_by_tag(&d[2], s->groups > 1 ? 5 : 4, s->groups > 1 ? grouped : w,
                                 bytes ? dnnl_s8 : type_of(o->b.stored.x[0]), dnnl_format_tag_any);
    dnnl_memory_desc_init_by_tag(&d[3], 1, bias, dnnl_f32, dnnl_a);
    return dnnl_dilated_convolution_forward_desc_init(op, dnnl_forward_inference, dnnl_convolution_direct,
                                                      &d[0], &d[2], &d[3], &d[1], stride, dil, before, after);
}

/* Scales per output, what is added, relu. */
static dnnl_primitive_attr_t attributes(const ours *o) {
    const hp_layer *l = o->b.layer;
    dnnl_primitive_attr_t attr;
    dnnl_post_ops_t post;
    float *scale = lines(4 * o->b.shape.oc);
    for (int i = 0; i < o->b.shape.oc; i++) scale[i] = 0.001f;
    dnnl_primitive_attr_create(&attr);
    dnnl_post_ops_create(&post);
    if (o->b.stored.x[0] == HP_U8) dnnl_primitive_attr_set_output_scales(attr, o->b.shape.oc, 2, scale);
    if (hp_layer_adds(l)) dnnl_post_ops_append_sum(post, o->b.stored.y == HP_U8 ? 0.5f : 1.0f);
    if (l->act) dnnl_post_ops_append_eltwise(post, 1, dnnl_eltwise_relu, 0, 0);
    dnnl_primitive_attr_set_post_ops(attr, post);
    free(scale);
    return attr;
}

static bool find_theirs(const bench *b, const ours *o, theirs *t) {
    static const int roles[4] = {DNNL_ARG_SRC, DNNL_ARG_DST, DNNL_ARG_WEIGHTS, DNNL_ARG_BIAS};
    dnnl_memory_desc_t d[4];
    dnnl_convolution_desc_t op;
    dnnl_primitive_desc_t pd;
    const char *name = "";
    if (type_of(o->b.stored.x[0]) == dnnl_data_type_undef || describe(o, d, &op) != dnnl_success)
        return false;
    dnnl_primitive_attr_t attr = attributes(o);
    if (dnnl_primitive_desc_create(&pd, &op, attr, b->engine, NULL) != dnnl_success) return false;
    dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, (void *)&name);
    snprintf(t->name, sizeof t->name, "%s", name);
    d[2] = *dnnl_primitive_desc_query_md(pd, dnnl_query_weights_md, 0);
    dnnl_primitive_create(&t->run, pd);
    for (int i = 0; i < 4; i++) {
        void *data;
        dnnl_memory_create(&t->arg[i].memory, &d[i], b->engine, DNNL_MEMORY_ALLOCATE);
        dnnl_memory_get_data_handle(t->arg[i].memory, &data);
        memset(data, 1, dnnl_memory_desc_get_size(&d[i]));
        t->arg[i].arg = roles[i];
    }
    t->b = b;
    dnnl_primitive_desc_destroy(pd);
    dnnl_primitive_attr_destroy(attr);
    return true;
}

static void drop_theirs(theirs *t) {
    for (int i = 0; i < 4; i++) dnnl_memory_destroy(t->arg[i].memory);
    dnnl_primitive_destroy(t->run);
}

/* --- layers --- */

static bool alike(const bench *b, int i, int k) {
    const hp_graph *g = b->graph;
    const hp_layer *p = &g->layer[i], *q = &g->layer[k];
    const hp_shape s = whole_shape(g, i, 1), t = whole_shape(g, k, 1);
    return p->op == q->op && p->act == q->act && p->n_in == q->n_in && memcmp(&s, &t, sizeof s) == 0 &&
           g->tensor[p->in[0]].store == g->tensor[q->in[0]].store &&
           g->tensor[p->out].store == g->tensor[q->out].store && (p->in[0] == 0) == (q->in[0] == 0);
}

static int times_of(const bench *b, int layer) {
    int n = 0;
    for (int k = 1; k < b->graph->n_layer; k++) {
        if (!hp_layer_is_matrix(&b->graph->layer[k]) || !alike(b, layer, k)) continue;
        if (k < layer) return 0;
        n++;
    }
    return n;
}

static void show(const bench *b, int layer, int times, const ours *o, double s, double theirs_s,
                 const char *name) {
    const hp_layer *l = &b->graph->layer[layer];
    const hp_shape *h = &o->b.shape;
    const double ops = 2.0 * (double)(b->samples * hp_layer_macs(b->graph, layer));
    printf("%3d x %-6s %dx%d s%d g%-3d %4d -> %4d %s at %4dx%-4d %9.3f ms %6.1f G/s", times,
           hp_layer_infos[l->op].name, h->kh, h->kw, h->sh, h->groups, h->ic, h->oc,
           hp_layer_adds(l) ? "+" : " ", h->oh, h->ow, 1e3 * s, 1e-9 * ops / s);
    if (theirs_s > 0)
        printf("  oneDNN %9.3f ms %6.1f G/s, %.2f of ours, %s", 1e3 * theirs_s, 1e-9 * ops / theirs_s,
               theirs_s / s, name);
    printf("  %s\n", o->k.name);
    fflush(stdout);
}

static hp_status measure(bench *b, int layer, int times, double sum[2], hp_error *err) {
    const int op = b->graph->layer[layer].op;
    ours o;
    theirs t;
    bind(b, layer, &o);
    HP_TRY(hp_cpu_prepare_matrix(&b->infer, &o.b, &o.k, err));
    const double s = median_of(b, run_ours, &o);
    double other = 0;
    if (op == HP_CONV && find_theirs(b, &o, &t)) {
        other = median_of(b, run_theirs, &t);
        drop_theirs(&t);
    }
    show(b, layer, times, &o, s, other, t.name);
    sum[0] += times * s;
    sum[1] += times * (other > 0 ? other : s);
    unbind(&o);
    return HP_OK;
}

static hp_status prepare(bench *b, char **argv, hp_error *err) {
    hp_deploy_options o = {0};
    hp_graph *net;
    const int image = atoi(argv[2]);
    while (o.prec < HP_PRECS && strcmp(hp_prec_names[o.prec], argv[3]) != 0) o.prec++;
    if (o.prec == HP_PRECS) return hp_fail(err, HP_EUSAGE, "no precision %s", argv[3]);
    b->arena = hp_arena_new();
    HP_TRY(hp_net_build(b->arena, argv[1], image, image, hp_net_default_classes(argv[1]), &net, err));
    HP_TRY(hp_graph_deploy(b->arena, net, &o, &b->graph, err));
    const hp_graph *g = b->graph;
    HP_TRY(hp_constants_open(&(hp_constants_options){.graph = g}, &b->constants, err));
    for (int t = 0; t < g->n_tensor; t++)
        if (hp_tensor_wants_qparam(g, t))
            hp_constants_set_qparam(b->constants, t,
                                    (hp_qparam){0.05f, g->layer[g->tensor[t].producer].act ? 0 : 100});
    b->role = (hp_role){.buffer = HP_NEW(b->arena, hp_buffer, g->n_layer),
                        .pack_forward = HP_NEW(b->arena, int32_t, g->n_layer)};
    for (int l = 0; l < g->n_layer; l++) b->role.pack_forward[l] = l;
    b->program = (hp_program){.mode = HP_MODE_INFER, .dtype = HP_F32};
    b->config =
        (hp_device_config){.program = &b->program, .graph = g, .role = &b->role, .constants = b->constants};
    b->infer =
        (hp_infer){.config = &b->config, .arena = b->arena, .packed = HP_NEW(b->arena, bool, g->n_layer)};
    if (dnnl_engine_create(&b->engine, dnnl_cpu, 0) != dnnl_success ||
        dnnl_stream_create(&b->stream, b->engine, dnnl_stream_default_flags) != dnnl_success)
        return hp_fail(err, HP_EUNAVAIL, "oneDNN cannot use this processor");
    return HP_OK;
}

static hp_status measure_all(bench *b, char **argv, hp_error *err) {
    double sum[2] = {0}, ops = 0;
    HP_TRY(prepare(b, argv, err));
    for (int l = 1; l < b->graph->n_layer; l++) {
        if (!hp_layer_is_matrix(&b->graph->layer[l])) continue;
        ops += 2.0 * (double)(b->samples * hp_layer_macs(b->graph, l));
        const int times = times_of(b, l);
        if (times) HP_TRY(measure(b, l, times, sum, err));
    }
    printf("%s %s %s: %.3f ms, %.1f G/s; with oneDNN's convolutions %.3f ms, %.3f of ours\n", argv[1],
           argv[2], argv[3], 1e3 * sum[0], 1e-9 * ops / sum[0], 1e3 * sum[1], sum[1] / sum[0]);
    return HP_OK;
}

int main(int argc, char **argv) {
    bench b = {.samples = argc > 4 ? atoi(argv[4]) : 1, .seconds = argc > 5 ? atof(argv[5]) : 0.2};
    hp_error err = {0};
    if (argc < 4)
        return fprintf(stderr, "usage: %s NET IMAGE fp32|bf16|fp16|int8 [BATCH [SECONDS]]\n", argv[0]), 2;
    if (measure_all(&b, argv, &err) == HP_OK) return 0;
    fprintf(stderr, "%s\n", err.text);
    return 1;
}
