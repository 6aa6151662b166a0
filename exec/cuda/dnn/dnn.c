/* dnn.c - plans of convolutions: the pieces of an operation, each with an engine. */
#include "exec/cuda/dnn/engine.h"
#include "exec/cuda/dnn/strips.h"
#include "networks/graph/acts.h"

#include <stdlib.h>
#include <string.h>

typedef struct part {
    hp_dnn_piece piece;
    hp_dnn_engine *engine;
} part;

struct hp_dnn_plan {
    hp_dnn_plan *next;
    hp_dnn *d;
    hp_dnn_conv asked;
    int64_t cap, workspace;
    bool fused;
    int n;
    part *part;
    char name[64];
};

/* --- opening --- */

static hp_status refused(cudnnStatus_t status, const char *call, const char *text, hp_error *err) {
    return hp_fail(err, HP_EUNAVAIL, "%s: %s%s%.200s", call, cudnnGetErrorString(status), *text ? ": " : "",
                   text);
}

static hp_dnn *new_dnn(void) {
    hp_dnn *d = calloc(1, sizeof *d);
    HP_ASSERT(d);
    d->choices = json_object();
    d->shared = json_object();
    return d;
}

static hp_status open_handle(hp_dnn *d, hp_error *err) {
    cudnnStatus_t status = cudnnCreate(&d->handle);
    if (status != CUDNN_STATUS_SUCCESS) return refused(status, "cudnnCreate", "", err);
    status = cudnnSetStream(d->handle, d->cuda->compute);
    return status == CUDNN_STATUS_SUCCESS ? HP_OK : refused(status, "cudnnSetStream", "", err);
}

hp_status hp_dnn_open(hp_cuda *cuda, hp_dnn **dnn, hp_error *err) {
    hp_dnn *d = new_dnn();
    d->cuda = cuda;
    snprintf(d->gpu, sizeof d->gpu, "%s", cuda->properties.name);
    const hp_status s = open_handle(d, err);
    if (s != HP_OK) {
        hp_dnn_close(d);
        return s;
    }
    hp_dnn_cache_read(d);
    *dnn = d;
    return HP_OK;
}

static hp_status describe(hp_dnn *d, const char *json, hp_error *err) {
    hp_dnn_owner *o = &d->own;
    json_t *facts = json_loads(json, 0, NULL);
    const char *name = json_string_value(json_object_get(facts, "deviceName"));
    snprintf(d->gpu, sizeof d->gpu, "%s", name ? name : "");
    json_decref(facts);
    if (!*d->gpu) return hp_fail(err, HP_EDATA, "the description of a GPU lacks its deviceName");
    d->described = hp_dnn_make(o, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
    hp_dnn_set(o, d->described, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
               (int64_t)strlen(json) + 1, json);
    hp_dnn_finish(o, d->described);
    return o->status == CUDNN_STATUS_SUCCESS ? HP_OK
                                             : refused(o->status, "the description of a GPU", o->text, err);
}

hp_status hp_dnn_open_like(const char *json, bool compile, hp_dnn **dnn, hp_error *err) {
    hp_dnn *d = new_dnn();
    d->compile = compile;
    const hp_status s = describe(d, json, err);
    if (s == HP_OK)
        *dnn = d;
    else
        hp_dnn_close(d);
    return s;
}

static void free_plan(hp_dnn_plan *p) {
    free(p->part);
    free(p);
}

void hp_dnn_close(hp_dnn *d) {
    if (!d) return;
    if (d->handle) hp_dnn_cache_write(d);
    for (hp_dnn_plan *p = d->plans, *next; p; p = next) {
        next = p->next;
        free_plan(p);
    }
    for (hp_dnn_engine *e = d->engines, *next; e; e = next) {
        next = e->next;
        hp_dnn_engine_free(e);
    }
    hp_dnn_release(&d->own);
    if (d->handle) cudnnDestroy(d->handle);
    json_decref(d->choices);
    json_decref(d->shared);
    free(d);
}

/* --- the key --- */

const char *hp_dnn_key(const hp_dnn_conv *c, char out[HP_DNN_KEY]) {
    static const char *const KINDS[] = {"fwd", "dgrad", "wgrad"};
    const char *math = c->dtype != HP_F32 ? "" : c->math == HP_DNN_STRICT ? " strict" : " tf32";
    char view[48] = "";
    if (c->x_row) snprintf(view, sizeof view, " v%lld,%lld", (long long)c->x_row, (long long)c->x_sample);
    snprintf(out, HP_DNN_KEY,
             "%s %s%s n%lld i%dx%dx%d o%dx%dx%d k%dx%d s%dx%d d%dx%d g%d p%d,%d,%d,%d a%d%s%s%s%s%s",
             KINDS[c->kind], hp_dtype_names[c->dtype], math, (long long)c->n, (int)c->ih, (int)c->iw,
             (int)c->ic, (int)c->oh, (int)c->ow, (int)c->oc, (int)c->kh, (int)c->kw, (int)c->stride_h,
             (int)c->stride_w, (int)c->dil_h, (int)c->dil_w, (int)c->groups, (int)c->pad.top,
             (int)c->pad.left, (int)c->pad.bottom, (int)c->pad.right, (int)c->alignment, view,
             c->bias ? " bias" : "", c->add ? " add" : "", c->act ? " " : "", hp_act_names[c->act]);
    return out;
}

/* --- making a plan --- */

static bool fuses(const hp_dnn_conv *c) {
    return c->kind == HP_DNN_FORWARD && (c->bias || c->add || c->act != HP_ACT_NONE);
}

/* The convolution without its epilogue. */
static hp_dnn_conv alone(hp_dnn_conv c) {
    c.bias = c.add = false;
    c.act = HP_ACT_NONE;
    return c;
}

static hp_status find_engines(hp_dnn_plan *p, const hp_dnn_conv *c, int64_t limit, hp_error *err) {
    hp_dnn_piece *piece = NULL;
    HP_TRY(hp_dnn_split(c, limit, &piece, &p->n, err));
    HP_ASSERT(p->n > 0);
    p->part = calloc((size_t)p->n, sizeof *p->part);
    HP_ASSERT(p->part);
    hp_status s = HP_OK;
    for (int i = 0; i < p->n && s == HP_OK; i++) {
        part *t = &p->part[i];
        t->piece = piece[i];
        s = hp_dnn_engine_find(p->d, &t->piece.conv, p->cap, &t->engine, err);
        if (s == HP_OK && t->engine->workspace > p->workspace) p->workspace = t->engine->workspace;
    }
    free(piece);
    return s;
}

static bool generic(const hp_dnn_plan *p) {
    for (int i = 0; i < p->n; i++)
        if (p->part[i].engine->index == 0) return true;
    return false;
}

/* Only the fallback heuristic names it. With the epilogue of a strict float32 convolution fused, such an
 * engine runs at a fiftieth of the speed of the convolution alone. Measured with cuDNN 9.19 on an H100:
 * engine 8 with bias, sum and ReLU, 0.6 to 0.8 Tflop/s. */
static bool last_resort(const hp_dnn_plan *p) {
    for (int i = 0; i < p->n; i++)
        if (p->part[i].engine->last_resort) return true;
    return false;
}

static int64_t most_elements(const hp_dnn_conv *c) {
    const int64_t x = (int64_t)c->ih * c->iw * c->ic, y = (int64_t)c->oh * c->ow * c->oc;
    return c->n * (x > y ? x : y);
}

static void take_parts(hp_dnn_plan *p, hp_dnn_plan *from) {
    free(p->part);
    p->part = from->part;
    p->n = from->n;
    p->workspace = from->workspace;
}

/* Cuts the convolution into smaller pieces until engines fit that copy whole tensors into their workspace:
 * they are still faster than the generic engine, which copies nothing. */
static hp_status find_fitting(hp_dnn_plan *p, const hp_dnn_conv *c, hp_error *err) {
    enum { LEAST_ELEMENTS = 1 << 20 }; /* elements of a piece: smaller ones would leave a GPU idle */
    const int64_t all = most_elements(c);
    hp_status s = find_engines(p, c, HP_DNN_MOST_ELEMENTS, err);
    for (int64_t k = 2; (s != HP_OK || generic(p)) && all / k >= LEAST_ELEMENTS; k *= 2) {
        hp_dnn_plan cut = {.d = p->d, .cap = p->cap};
        hp_error why;
        const bool found = find_engines(&cut, c, all / k, &why) == HP_OK;
        if (found && (s != HP_OK || !generic(&cut))) {
            take_parts(p, &cut);
            s = HP_OK;
        } else {
            free(cut.part);
        }
    }
    return s;
}

/* Is the unfused plan better than the fused one? If the epilogue has a sum: always, unless it is generic. */
static bool is_better(const hp_dnn_plan *unfused, const hp_dnn_conv *asked) {
    return asked->add ? !generic(unfused) : !last_resort(unfused);
}

/* Uses the convolution alone where that beats the plan with the epilogue fused, or there is none. */
static hp_status find_alone(hp_dnn_plan *p, hp_status with, hp_error *err) {
    const hp_dnn_conv plain = alone(p->asked);
    hp_dnn_plan unfused = {.d = p->d, .cap = p->cap};
    const hp_status s = find_fitting(&unfused, &plain, err);
    if (s == HP_OK && (with != HP_OK || is_better(&unfused, &p->asked))) {
        take_parts(p, &unfused);
        p->fused = false;
        return HP_OK;
    }
    free(unfused.part);
    return with == HP_OK ? HP_OK : s;
}

static void name(hp_dnn_plan *p) {
    const hp_dnn_engine *e = p->part[0].engine;
    char pieces[24] = "";
    if (p->n > 1) snprintf(pieces, sizeof pieces, ", %d pieces", p->n);
    snprintf(p->name, sizeof p->name, "cudnn engine %lld%s%s", (long long)e->index,
             e->tensor_cores ? ", tensor cores" : "", pieces);
}

static hp_status choose(hp_dnn_plan *p, hp_error *err) {
    p->fused = true;
    hp_status s = find_fitting(p, &p->asked, err);
    if (fuses(&p->asked) && (s == HP_EUNAVAIL || (s == HP_OK && last_resort(p)))) s = find_alone(p, s, err);
    if (s == HP_OK) name(p);
    return s;
}

static bool same(const hp_dnn_conv *a, const hp_dnn_conv *b) {
    char key[2][HP_DNN_KEY];
    return strcmp(hp_dnn_key(a, key[0]), hp_dnn_key(b, key[1])) == 0;
}

hp_status hp_dnn_plan_conv(hp_dnn *d, const hp_dnn_conv *c, int64_t workspace, hp_dnn_plan **plan,
                           hp_error *err) {
    HP_ASSERT(c->act == HP_ACT_NONE || c->act == HP_ACT_RELU || c->act == HP_ACT_RELU6);
    HP_ASSERT(c->kind == HP_DNN_FORWARD || (!c->bias && c->act == HP_ACT_NONE));
    for (*plan = d->plans; *plan; *plan = (*plan)->next)
        if ((*plan)->cap == hp_cuda_workspace_left(workspace) && same(&(*plan)->asked, c)) return HP_OK;
    hp_dnn_plan *p = calloc(1, sizeof *p);
    HP_ASSERT(p);
    p->d = d;
    p->asked = *c;
    p->cap = hp_cuda_workspace_left(workspace);
    const hp_status s = choose(p, err);
    if (s != HP_OK) {
        free_plan(p);
        return s;
    }
    p->next = d->plans;
    *plan = d->plans = p;
    return HP_OK;
}

/* --- another choice --- */

static void drop_engines(hp_dnn *d, const char *key) {
    for (hp_dnn_engine **at = &d->engines, *e; (e = *at);) {
        if (strcmp(e->key, key) != 0) {
            at = &e->next;
            continue;
        }
        *at = e->next;
        hp_dnn_engine_free(e);
    }
}

static bool uses(const part *t, const char *key) {
    char own[HP_DNN_KEY];
    return strcmp(hp_dnn_key(&t->piece.conv, own), key) == 0;
}

static hp_status replan(hp_dnn_plan *p, const char *key, hp_error *err) {
    p->workspace = 0;
    for (int i = 0; i < p->n; i++) {
        part *t = &p->part[i];
        if (uses(t, key)) HP_TRY(hp_dnn_engine_find(p->d, &t->piece.conv, p->cap, &t->engine, err));
        if (t->engine->workspace > p->workspace) p->workspace = t->engine->workspace;
    }
    name(p);
    return HP_OK;
}

hp_status hp_dnn_replan(hp_dnn *d, const char *key, hp_error *err) {
    drop_engines(d, key);
    for (hp_dnn_plan *p = d->plans; p; p = p->next) HP_TRY(replan(p, key, err));
    return HP_OK;
}

bool hp_dnn_plan_fused(const hp_dnn_plan *p) {
    return p->fused;
}

int64_t hp_dnn_plan_workspace(const hp_dnn_plan *p) {
    return p->workspace;
}

int64_t hp_dnn_plan_engine(const hp_dnn_plan *p) {
    return p->part[0].engine->index;
}

const char *hp_dnn_plan_name(const hp_dnn_plan *p) {
    return p->name;
}

/* --- running --- */

enum { MOST_TENSORS = 5 };

static void name_tensor(int64_t *uid, void **at, int64_t *n, int64_t id, void *address) {
    uid[*n] = id;
    at[(*n)++] = address;
}

hp_status hp_dnn_engine_run(const hp_dnn *d, const hp_dnn_conv *c, const hp_dnn_engine *e,
                            const hp_dnn_data *data, hp_error *err) {
    hp_dnn_owner o = {0};
    int64_t uid[MOST_TENSORS], n = 0;
    void *at[MOST_TENSORS];
    name_tensor(uid, at, &n, HP_DNN_X, data->x);
    name_tensor(uid, at, &n, HP_DNN_W, data->w);
    name_tensor(uid, at, &n, HP_DNN_Y, data->y);
    if (c->bias) name_tensor(uid, at, &n, HP_DNN_BIAS, data->bias);
    if (c->add && c->kind == HP_DNN_FORWARD) name_tensor(uid, at, &n, HP_DNN_Z, data->z);
    const cudnnBackendDescriptor_t pack = hp_dnn_make(&o, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    hp_dnn_set(&o, pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, n, uid);
    hp_dnn_set(&o, pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, n, (const void *)at);
    hp_dnn_set(&o, pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1,
               (const void *)&data->workspace);
    hp_dnn_finish(&o, pack);
    const cudnnStatus_t status =
        o.status == CUDNN_STATUS_SUCCESS ? cudnnBackendExecute(d->handle, e->plan, pack) : o.status;
    const hp_status s = status == CUDNN_STATUS_SUCCESS ? HP_OK : refused(status, e->key, o.text, err);
    hp_dnn_release(&o);
    return s;
}

static void *moved(void *at, int64_t elements, int32_t dtype) {
    return at ? (unsigned char *)at + elements * hp_dtype_bytes((hp_dtype)dtype) : NULL;
}

/* Zeroes the gradient of inputs that no window reads. */
static hp_status clear(const hp_dnn_plan *p, void *dx, hp_error *err) {
    const hp_dnn_conv *c = &p->asked;
    const int64_t bytes = c->n * hp_dnn_x_sample(c) * hp_dtype_bytes((hp_dtype)c->dtype);
    if (hp_dnn_leaves(c)) HP_CUDA(cudaMemsetAsync(dx, 0, (size_t)bytes, p->d->cuda->compute));
    return HP_OK;
}

hp_status hp_dnn_run(hp_dnn_plan *p, const hp_dnn_data *data, hp_error *err) {
    HP_TRY(clear(p, data->x, err));
    void *const workspace = p->workspace ? hp_cuda_workspace_at(data->workspace) : NULL;
    for (int i = 0; i < p->n; i++) {
        const hp_dnn_piece *piece = &p->part[i].piece;
        hp_dnn_data there = *data;
        there.workspace = workspace;
        there.x = moved(data->x, piece->x_at, piece->conv.dtype);
        there.y = moved(data->y, piece->y_at, piece->conv.dtype);
        there.z = moved(data->z, piece->y_at, piece->conv.dtype);
        HP_TRY(hp_dnn_engine_run(p->d, &piece->conv, p->part[i].engine, &there, err));
    }
    return HP_OK;
}
