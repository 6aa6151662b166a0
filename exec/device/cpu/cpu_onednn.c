/* cpu_onednn.c - the only file that knows oneDNN's API (2.6); see cpu_onednn.h. */
#define _GNU_SOURCE /* RTLD_DEFAULT */
#include "exec/device/cpu/cpu_onednn.h"

#include <dlfcn.h>
#include <oneapi/dnnl/dnnl.h>
#include <stdlib.h>
#include <string.h>

/* Number of values that determine which implementation the library chooses. */
enum { KEY = 20 };

struct hp_onednn_kernel {
    hp_onednn *lib;
    struct hp_onednn_kernel *next;
    hp_onednn_kind kind;
    int64_t key[KEY];
    char name[64];
    dnnl_primitive_t run, reorder, reorder_add; /* reorders: weights to and from canonical; run NULL: no
                                                 * acceptable implementation */
    dnnl_memory_t x, y, weights, bias, canonical, scratch;
    int64_t weight_bytes, scratch_bytes; /* scratch: the library's own */
};

struct hp_onednn {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    hp_onednn_kernel *kernels;
};

static const char *status_text(dnnl_status_t s) {
    static const char *const texts[] = {"success", "out of memory", "invalid arguments", "unimplemented"};
    return (size_t)s < sizeof texts / sizeof *texts ? texts[s] : "run-time error";
}

#define CALL(call)                                                                                           \
    do {                                                                                                     \
        const dnnl_status_t call_status_ = (call);                                                           \
        if (call_status_ != dnnl_success)                                                                    \
            return hp_fail(err, HP_EINTERNAL, "oneDNN: %s: %s", #call, status_text(call_status_));           \
    } while (0)

/* The library brings its own OpenMP run time, libgomp or another: the function is looked up rather
 * than linked twice. */
static void set_threads(int threads) {
    void (*set)(int) = NULL;
    void *symbol = dlsym(RTLD_DEFAULT, "omp_set_num_threads");
    memcpy(&set, &symbol, sizeof set); /* ISO C cannot cast an object pointer to a function pointer */
    if (set) set(threads);
}

hp_status hp_onednn_open(int threads, hp_onednn **lib, hp_error *err) {
    hp_onednn *l = calloc(1, sizeof *l);
    HP_ASSERT(l != NULL);
    set_threads(threads);
    if (dnnl_engine_create(&l->engine, dnnl_cpu, 0) != dnnl_success ||
        dnnl_stream_create(&l->stream, l->engine, dnnl_stream_default_flags) != dnnl_success) {
        hp_onednn_close(l);
        return hp_fail(err, HP_EUNAVAIL, "oneDNN cannot use this processor: use --device ref");
    }
    *lib = l;
    return HP_OK;
}

static void kernel_free(hp_onednn_kernel *k) {
    dnnl_memory_t memories[] = {k->x, k->y, k->weights, k->bias, k->canonical, k->scratch};
    dnnl_primitive_t primitives[] = {k->run, k->reorder, k->reorder_add};
    for (size_t i = 0; i < sizeof memories / sizeof *memories; i++)
        if (memories[i]) dnnl_memory_destroy(memories[i]);
    for (size_t i = 0; i < sizeof primitives / sizeof *primitives; i++)
        if (primitives[i]) dnnl_primitive_destroy(primitives[i]);
    free(k);
}

void hp_onednn_close(hp_onednn *lib) {
    for (hp_onednn_kernel *k = lib->kernels, *next; k; k = next) {
        next = k->next;
        kernel_free(k);
    }
    if (lib->stream) dnnl_stream_destroy(lib->stream);
    if (lib->engine) dnnl_engine_destroy(lib->engine);
    free(lib);
}

/* --- descriptions of tensors --- */

typedef struct descs {
    dnnl_memory_desc_t x, y, any_weights, canonical, bias;
} descs;

static hp_status image_desc(dnnl_memory_desc_t *d, int64_t n, int h, int w, int c, hp_error *err) {
    const dnnl_dims_t dims = {n, c, h, w};
    CALL(dnnl_memory_desc_init_by_tag(d, 4, dims, dnnl_f32, dnnl_nhwc));
    return HP_OK;
}

static hp_status tensor_descs(const hp_shape *s, descs *d, hp_error *err) {
    const dnnl_dims_t plain = {s->oc, s->ic, s->kh, s->kw}, bias = {s->oc};
    const dnnl_dims_t grouped = {s->groups, s->oc / s->groups, s->ic / s->groups, s->kh, s->kw};
    const int rank = s->groups > 1 ? 5 : 4;
    const dnnl_dim_t *weights = s->groups > 1 ? grouped : plain;
    CALL(dnnl_memory_desc_init_by_tag(&d->bias, 1, bias, dnnl_f32, dnnl_a));
    HP_TRY(image_desc(&d->y, s->n, s->oh, s->ow, s->oc, err));
    HP_TRY(image_desc(&d->x, s->n, s->ih, s->iw, s->ic, err));
    CALL(dnnl_memory_desc_init_by_tag(&d->any_weights, rank, weights, dnnl_f32, dnnl_format_tag_any));
    CALL(dnnl_memory_desc_init_by_tag(&d->canonical, rank, weights, dnnl_f32,
                                      rank == 5 ? dnnl_abcde : dnnl_abcd));
    return HP_OK;
}

/* --- operation descriptors --- */

static dnnl_status_t conv_desc(hp_onednn_kind kind, const hp_shape *s, const descs *d, bool bias,
                               dnnl_convolution_desc_t *op) {
    const dnnl_dims_t stride = {s->sh, s->sw}, dilation = {s->dh - 1, s->dw - 1}, before = {s->ph, s->pw};
    const dnnl_dims_t after = {(s->oh - 1) * s->sh + (s->kh - 1) * s->dh + 1 - s->ih - s->ph,
                               (s->ow - 1) * s->sw + (s->kw - 1) * s->dw + 1 - s->iw - s->pw};
    const dnnl_memory_desc_t *b = bias ? &d->bias : NULL, *w = &d->any_weights;
    const dnnl_alg_kind_t direct = dnnl_convolution_direct;
    if (kind == HP_ONEDNN_FORWARD)
        return dnnl_dilated_convolution_forward_desc_init(op, dnnl_forward_training, direct, &d->x, w, b,
                                                          &d->y, stride, dilation, before, after);
    if (kind == HP_ONEDNN_BACKWARD_DATA)
        return dnnl_dilated_convolution_backward_data_desc_init(op, direct, &d->x, w, &d->y, stride, dilation,
                                                                before, after);
    return dnnl_dilated_convolution_backward_weights_desc_init(op, direct, &d->x, w, b, &d->y, stride,
                                                               dilation, before, after);
}

/* --- choosing an implementation --- */

static const dnnl_memory_desc_t *weights_desc(hp_onednn_kind kind, const_dnnl_primitive_desc_t pd) {
    return dnnl_primitive_desc_query_md(
        pd, kind == HP_ONEDNN_BACKWARD_WEIGHTS ? dnnl_query_diff_weights_md : dnnl_query_weights_md, 0);
}

static int64_t scratch_of(const_dnnl_primitive_desc_t pd) {
    return (int64_t)dnnl_memory_desc_get_size(dnnl_primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0));
}

static int64_t line_up(int64_t bytes) {
    return (bytes + 63) / 64 * 64;
}

static const char *name_of(const_dnnl_primitive_desc_t pd) {
    const char *name = "";
    dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, (void *)&name);
    return name;
}

static bool acceptable(hp_onednn_kind kind, const_dnnl_primitive_desc_t pd, hp_onednn_limits limits) {
    const int64_t weights = (int64_t)dnnl_memory_desc_get_size(weights_desc(kind, pd)),
                  scratch = scratch_of(pd);
    if (strncmp(name_of(pd), "ref", 3) == 0) return false;
    if (kind != HP_ONEDNN_BACKWARD_WEIGHTS)
        return weights <= limits.pack_bytes && scratch <= limits.scratch_bytes;
    return line_up(weights) + scratch <= limits.scratch_bytes;
}

/* Sets *found to the first acceptable primitive descriptor; NULL: none. */
static hp_status choose(hp_onednn *lib, hp_onednn_kind kind, const dnnl_convolution_desc_t *op,
                        const_dnnl_primitive_desc_t hint, hp_onednn_limits limits,
                        dnnl_primitive_desc_t *found, hp_error *err) {
    dnnl_primitive_attr_t attr;
    dnnl_primitive_desc_iterator_t it = NULL;
    *found = NULL;
    CALL(dnnl_primitive_attr_create(&attr));
    dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user);
    if (dnnl_primitive_desc_iterator_create(&it, op, attr, lib->engine, hint) == dnnl_success) do {
            dnnl_primitive_desc_t pd = dnnl_primitive_desc_iterator_fetch(it);
            if (pd && acceptable(kind, pd, limits))
                *found = pd;
            else if (pd)
                dnnl_primitive_desc_destroy(pd);
        } while (!*found && dnnl_primitive_desc_iterator_next(it) == dnnl_success);
    if (it) dnnl_primitive_desc_iterator_destroy(it);
    dnnl_primitive_attr_destroy(attr);
    return HP_OK;
}

/* Backward kernels need a forward descriptor as a hint; any implementation will do. */
static dnnl_primitive_desc_t forward_hint(hp_onednn *lib, const hp_shape *s, const descs *d) {
    dnnl_convolution_desc_t op;
    dnnl_primitive_desc_t hint = NULL;
    if (conv_desc(HP_ONEDNN_FORWARD, s, d, false, &op) != dnnl_success) return NULL;
    return dnnl_primitive_desc_create(&hint, &op, NULL, lib->engine, NULL) == dnnl_success ? hint : NULL;
}

static hp_status make_reorder(hp_onednn *lib, const dnnl_memory_desc_t *from, const dnnl_memory_desc_t *to,
                              bool add, dnnl_primitive_t *reorder, hp_error *err) {
    dnnl_primitive_attr_t attr;
    dnnl_post_ops_t sum;
    dnnl_primitive_desc_t pd = NULL;
    CALL(dnnl_primitive_attr_create(&attr));
    CALL(dnnl_post_ops_create(&sum));
    if (add) dnnl_post_ops_append_sum(sum, 1.0f);
    dnnl_primitive_attr_set_post_ops(attr, sum);
    dnnl_status_t status = dnnl_reorder_primitive_desc_create(&pd, from, lib->engine, to, lib->engine, attr);
    if (status == dnnl_success) status = dnnl_primitive_create(reorder, pd);
    if (pd) dnnl_primitive_desc_destroy(pd);
    dnnl_post_ops_destroy(sum);
    dnnl_primitive_attr_destroy(attr);
    CALL(status);
    return HP_OK;
}

static hp_status make_memory(hp_onednn *lib, const dnnl_memory_desc_t *d, dnnl_memory_t *m, hp_error *err) {
    CALL(dnnl_memory_create(m, d, lib->engine, DNNL_MEMORY_NONE));
    return HP_OK;
}

static hp_status fill_kernel(hp_onednn_kernel *k, const_dnnl_primitive_desc_t pd, const descs *d, bool bias,
                             hp_error *err) {
    const dnnl_memory_desc_t *w = weights_desc(k->kind, pd);
    const bool gradient = k->kind == HP_ONEDNN_BACKWARD_WEIGHTS;
    snprintf(k->name, sizeof k->name, "%s", name_of(pd));
    k->weight_bytes = (int64_t)dnnl_memory_desc_get_size(w);
    k->scratch_bytes = scratch_of(pd);
    CALL(dnnl_primitive_create(&k->run, pd));
    HP_TRY(make_memory(k->lib, &d->x, &k->x, err));
    HP_TRY(make_memory(k->lib, &d->y, &k->y, err));
    HP_TRY(make_memory(k->lib, w, &k->weights, err));
    HP_TRY(make_memory(k->lib, &d->canonical, &k->canonical, err));
    HP_TRY(
        make_memory(k->lib, dnnl_primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0), &k->scratch, err));
    if (bias) HP_TRY(make_memory(k->lib, &d->bias, &k->bias, err));
    if (!gradient) return make_reorder(k->lib, &d->canonical, w, false, &k->reorder, err);
    HP_TRY(make_reorder(k->lib, w, &d->canonical, false, &k->reorder, err));
    return make_reorder(k->lib, w, &d->canonical, true, &k->reorder_add, err);
}

static void make_key(hp_onednn_kind kind, const hp_shape *s, bool bias, hp_onednn_limits limits,
                     int64_t key[KEY]) {
    const int64_t all[KEY] = {kind,
                              bias,
                              limits.pack_bytes,
                              limits.scratch_bytes,
                              s->n,
                              s->ih,
                              s->iw,
                              s->ic,
                              s->oh,
                              s->ow,
                              s->oc,
                              s->kh,
                              s->kw,
                              s->sh,
                              s->sw,
                              s->ph,
                              s->pw,
                              s->dh,
                              s->dw,
                              s->groups};
    memcpy(key, all, sizeof all);
}

static hp_status make_kernel(hp_onednn_kernel *k, const hp_shape *s, bool bias, hp_onednn_limits limits,
                             hp_error *err) {
    descs d;
    dnnl_convolution_desc_t op;
    dnnl_primitive_desc_t pd = NULL, hint = NULL;
    HP_TRY(tensor_descs(s, &d, err));
    if (conv_desc(k->kind, s, &d, bias, &op) != dnnl_success) return HP_OK;
    if (k->kind != HP_ONEDNN_FORWARD) hint = forward_hint(k->lib, s, &d);
    hp_status status = choose(k->lib, k->kind, &op, hint, limits, &pd, err);
    if (status == HP_OK && pd) status = fill_kernel(k, pd, &d, bias, err);
    if (pd) dnnl_primitive_desc_destroy(pd);
    if (hint) dnnl_primitive_desc_destroy(hint);
    return status;
}

hp_status hp_onednn_kernel_find(hp_onednn *lib, hp_onednn_kind kind, const hp_shape *s, bool bias,
                                hp_onednn_limits limits, hp_onednn_kernel **kernel, hp_error *err) {
    int64_t key[KEY];
    make_key(kind, s, bias, limits, key);
    hp_onednn_kernel *k = lib->kernels;
    while (k && memcmp(k->key, key, sizeof key) != 0) k = k->next;
    *kernel = k && k->run ? k : NULL;
    if (k) return HP_OK;
    k = calloc(1, sizeof *k);
    HP_ASSERT(k != NULL);
    *k = (hp_onednn_kernel){.lib = lib, .next = lib->kernels, .kind = kind};
    memcpy(k->key, key, sizeof key);
    lib->kernels = k;
    HP_TRY(make_kernel(k, s, bias, limits, err));
    *kernel = k->run ? k : NULL;
    return HP_OK;
}

static const dnnl_memory_desc_t *layout_of(const hp_onednn_kernel *k) {
    const dnnl_memory_desc_t *d = NULL;
    dnnl_memory_get_memory_desc(k->weights, &d);
    return d;
}

bool hp_onednn_same_layout(const hp_onednn_kernel *a, const hp_onednn_kernel *b) {
    return a == b || dnnl_memory_desc_equal(layout_of(a), layout_of(b));
}

const char *hp_onednn_kernel_name(const hp_onednn_kernel *k) {
    return k->name;
}

int64_t hp_onednn_kernel_pack_bytes(const hp_onednn_kernel *k) {
    return k->kind == HP_ONEDNN_BACKWARD_WEIGHTS ? 0 : k->weight_bytes;
}

int64_t hp_onednn_kernel_scratch_bytes(const hp_onednn_kernel *k) {
    const bool gradient = k->kind == HP_ONEDNN_BACKWARD_WEIGHTS;
    return k->scratch_bytes + (gradient ? line_up(k->weight_bytes) : 0);
}

/* --- running --- */

typedef struct operand {
    int role; /* DNNL_ARG_... */
    dnnl_memory_t memory;
    const void *at;
} operand;

static hp_status execute(hp_onednn_kernel *k, dnnl_primitive_t primitive, const operand *o, int n,
                         hp_error *err) {
    dnnl_exec_arg_t args[8];
    int count = 0;
    for (int i = 0; i < n; i++) {
        if (!o[i].memory) continue;
        void *at = NULL;
        memcpy(&at, &o[i].at, sizeof at); /* the API has no const handles */
        CALL(dnnl_memory_set_data_handle(o[i].memory, at));
        args[count++] = (dnnl_exec_arg_t){o[i].role, o[i].memory};
    }
    CALL(dnnl_primitive_execute(primitive, k->lib->stream, count, args));
    CALL(dnnl_stream_wait(k->lib->stream));
    return HP_OK;
}

hp_status hp_onednn_pack(hp_onednn_kernel *k, const float *weights, float *pack, hp_error *err) {
    const operand o[] = {{DNNL_ARG_FROM, k->canonical, weights}, {DNNL_ARG_TO, k->weights, pack}};
    return execute(k, k->reorder, o, 2, err);
}

hp_status hp_onednn_forward(hp_onednn_kernel *k, float *y, const float *x, const float *pack,
                            const float *bias, void *scratch, hp_error *err) {
    const operand o[] = {{DNNL_ARG_SRC, k->x, x},
                         {DNNL_ARG_WEIGHTS, k->weights, pack},
                         {DNNL_ARG_DST, k->y, y},
                         {DNNL_ARG_SCRATCHPAD, k->scratch, scratch},
                         {DNNL_ARG_BIAS, k->bias, bias}};
    return execute(k, k->run, o, 5, err);
}

hp_status hp_onednn_backward_data(hp_onednn_kernel *k, float *dx, const float *dy, const float *pack,
                                  void *scratch, hp_error *err) {
    const operand o[] = {{DNNL_ARG_DIFF_SRC, k->x, dx},
                         {DNNL_ARG_WEIGHTS, k->weights, pack},
                         {DNNL_ARG_DIFF_DST, k->y, dy},
                         {DNNL_ARG_SCRATCHPAD, k->scratch, scratch}};
    return execute(k, k->run, o, 4, err);
}

hp_status hp_onednn_backward_weights(hp_onednn_kernel *k, float *dw, const float *x, const float *dy,
                                     bool add, void *scratch, hp_error *err) {
    unsigned char *own = scratch;
    const operand o[] = {{DNNL_ARG_SRC, k->x, x},
                         {DNNL_ARG_DIFF_WEIGHTS, k->weights, own},
                         {DNNL_ARG_DIFF_DST, k->y, dy},
                         {DNNL_ARG_SCRATCHPAD, k->scratch, own + line_up(k->weight_bytes)}};
    HP_TRY(execute(k, k->run, o, 4, err));
    const operand back[] = {{DNNL_ARG_FROM, k->weights, own}, {DNNL_ARG_TO, k->canonical, dw}};
    return execute(k, add ? k->reorder_add : k->reorder, back, 2, err);
}

hp_status hp_onednn_matrix_part(float *c, const float *a, int64_t lda, const float *b, int64_t ldb, int64_t m,
                                int64_t n, int64_t k, bool transpose_a, bool transpose_b, bool add,
                                hp_error *err) {
    CALL(dnnl_sgemm(transpose_a ? 'T' : 'N', transpose_b ? 'T' : 'N', m, n, k, 1.0f, a, lda, b, ldb,
                    add ? 1.0f : 0.0f, c, n));
    return HP_OK;
}

hp_status hp_onednn_matrix(float *c, const float *a, const float *b, int64_t m, int64_t n, int64_t k,
                           bool transpose_a, bool transpose_b, bool add, hp_error *err) {
    return hp_onednn_matrix_part(c, a, transpose_a ? m : k, b, transpose_b ? k : n, m, n, k, transpose_a,
                                 transpose_b, add, err);
}

const char *hp_onednn_version(char out[32]) {
    const dnnl_version_t *v = dnnl_version();
    snprintf(out, 32, "%d.%d.%d", v->major, v->minor, v->patch);
    return out;
}
