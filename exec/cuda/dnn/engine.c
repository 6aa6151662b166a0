/* engine.c - cuDNN's engines for an operation: named by its heuristics, filtered by their
 * numerical behaviour. */
#include "exec/cuda/dnn/engine.h"

#include <stdlib.h>
#include <string.h>

/* --- what is required of an engine --- */

/* Always refused: sums that depend on the order of atomics, sums in half precision, inputs rounded to less
 * than their dtype, and transforms whose intermediate values lose bits. */
static const cudnnBackendNumericalNote_t NEVER[] = {
    CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC,    CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION,
    CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS, CUDNN_NUMERICAL_NOTE_FFT,
    CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6,   CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13};

typedef struct facts {
    int64_t index;
    unsigned notes; /* bit by cudnnBackendNumericalNote_t */
    bool compiled;
} facts;

static bool has(const facts *f, cudnnBackendNumericalNote_t note) {
    return f->notes >> note & 1;
}

static bool exact_enough(const hp_dnn_conv *c, const facts *f) {
    for (size_t i = 0; i < sizeof NEVER / sizeof *NEVER; i++)
        if (has(f, NEVER[i])) return false;
    /* float32 on tensor cores means TF32 */
    return c->dtype != HP_F32 || c->math == HP_DNN_TF32 || !has(f, CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
}

static facts facts_of(cudnnBackendDescriptor_t config) {
    hp_dnn_owner o = {0};
    facts f = {.index = -1};
    int64_t n = 0;
    cudnnBackendNumericalNote_t note[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
    cudnnBackendBehaviorNote_t behaviour[CUDNN_BEHAVIOR_NOTE_TYPE_COUNT];
    cudnnBackendDescriptor_t e = hp_dnn_make(&o, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    cudnnBackendGetAttribute(config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &n,
                             (void *)&e);
    cudnnBackendGetAttribute(e, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &n, &f.index);
    n = 0;
    cudnnBackendGetAttribute(e, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                             CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &n, note);
    for (int64_t i = 0; i < n && i < CUDNN_NUMERICAL_NOTE_TYPE_COUNT; i++) f.notes |= 1u << note[i];
    n = 0;
    cudnnBackendGetAttribute(e, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE,
                             CUDNN_BEHAVIOR_NOTE_TYPE_COUNT, &n, behaviour);
    for (int64_t i = 0; i < n && i < CUDNN_BEHAVIOR_NOTE_TYPE_COUNT; i++)
        f.compiled |= behaviour[i] == CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION;
    hp_dnn_release(&o);
    return f;
}

/* --- an operation's engines --- */

/* MOST_COMPILED: compiling takes a second of CPU each; for a fused operation heuristics name only
 * such engines first. */
enum { MOST_TIMED = 8, MOST_COMPILED = 3, MOST_NAMED = 256 };

typedef struct search {
    hp_dnn *d;
    const hp_dnn_conv *c;
    int64_t cap; /* workspace */
    int wanted, n;
    int compiled; /* built */
    hp_dnn_engine *found[MOST_TIMED];
    int named, inexact, large, unsupported; /* number of engines, and of those refused, by reason */
    hp_dnn_owner last;                      /* why the last unsupported one failed */
} search;

void hp_dnn_engine_free(hp_dnn_engine *e) {
    if (!e) return;
    hp_dnn_release(&e->own);
    json_decref(e->choice);
    free(e->text);
    free(e);
}

static int64_t size_of(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name) {
    int64_t n = 0, bytes = 0;
    cudnnBackendGetAttribute(d, name, CUDNN_TYPE_INT64, 1, &n, &bytes);
    return bytes;
}

static void begin_plan(const hp_dnn *d, hp_dnn_engine *e) {
    hp_dnn_owner *o = &e->own;
    e->plan = hp_dnn_make(o, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    if (d->handle)
        hp_dnn_set(o, e->plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1,
                   (const void *)&d->handle);
    else
        hp_dnn_set_desc(o, e->plan, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, d->described);
}

static void finish_plan(hp_dnn_engine *e) {
    hp_dnn_finish(&e->own, e->plan);
    if (e->own.status == CUDNN_STATUS_SUCCESS)
        e->workspace = size_of(e->plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
}

/* Without a GPU, kernels compiled at run time are assumed to exist, or compiled but not loaded: a driver
 * error at the end then counts as success. */
void hp_dnn_engine_build(const hp_dnn *d, hp_dnn_engine *e, cudnnBackendDescriptor_t config) {
    hp_dnn_owner *o = &e->own;
    begin_plan(d, e);
    hp_dnn_set_desc(o, e->plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
    e->workspace = size_of(config, CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE);
    if (d->described && e->compiled && !d->compile) return;
    finish_plan(e);
    if (d->described && e->compiled && o->status == CUDNN_STATUS_EXECUTION_FAILED_CUDA_DRIVER)
        o->status = CUDNN_STATUS_SUCCESS;
}

bool hp_dnn_engine_recall(const hp_dnn *d, hp_dnn_engine *e) {
    char *text = e->text ? e->text : hp_dnn_kept_text(d, e);
    if (!text) return false;
    begin_plan(d, e);
    hp_dnn_set(&e->own, e->plan, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
               (int64_t)strlen(text), text);
    finish_plan(e);
    const bool made = e->own.status == CUDNN_STATUS_SUCCESS;
    if (!made) hp_dnn_release(&e->own);
    e->kept = made && !e->text;
    e->text = NULL;
    free(text);
    return made;
}

static bool refuse(search *s, hp_dnn_engine *e) {
    const bool broken = e->own.status != CUDNN_STATUS_SUCCESS, large = !broken && e->workspace > s->cap;
    s->unsupported += broken;
    s->large += large;
    if (broken) memcpy(s->last.text, e->own.text, sizeof s->last.text);
    if (broken) s->last.status = e->own.status;
    return broken || large;
}

/* NULL: the engine must not be used. fallback: named by the fallback heuristic. */
static hp_dnn_engine *candidate(search *s, cudnnBackendDescriptor_t config, bool fallback) {
    const facts f = facts_of(config);
    s->named++;
    if (!exact_enough(s->c, &f)) {
        s->inexact++;
        return NULL;
    }
    hp_dnn_engine *e = calloc(1, sizeof *e);
    HP_ASSERT(e);
    e->index = f.index;
    e->tensor_cores = has(&f, CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
    e->compiled = f.compiled;
    hp_dnn_key(s->c, e->key);
    e->last_resort = fallback || f.index == 0;
    e->choice = hp_dnn_choice_of(config, f.index);
    if (e->last_resort) json_object_set_new(e->choice, HP_DNN_LAST_RESORT, json_true());
    return e;
}

/* Adds the engine if its plan can be made, and then keeps the configuration beside the plan, as
 * NVIDIA's front end does. */
static void settle(search *s, hp_dnn_engine *e, hp_dnn_owner *of, cudnnBackendDescriptor_t config) {
    const bool recalls = e->compiled && (s->d->cuda || e->text);
    if (!recalls || !hp_dnn_engine_recall(s->d, e)) hp_dnn_engine_build(s->d, e, config);
    s->compiled += e->compiled && !e->kept;
    if (refuse(s, e)) {
        hp_dnn_engine_free(e);
        return;
    }
    hp_dnn_give(of, config, &e->own);
    s->found[s->n++] = e;
}

static void consider(search *s, hp_dnn_owner *of, cudnnBackendDescriptor_t config, bool fallback) {
    hp_dnn_engine *e = candidate(s, config, fallback);
    if (e) settle(s, e, of, config);
}

/* --- heuristics --- */

typedef struct named {
    cudnnBackendHeurMode_t mode;
    bool asked;
    hp_dnn_owner own;
    int64_t n;
    cudnnBackendDescriptor_t config[MOST_NAMED];
} named;

static void ask(named *h, const hp_dnn *d, cudnnBackendDescriptor_t graph) {
    hp_dnn_owner *o = &h->own;
    int64_t got = 0;
    h->asked = true;
    const cudnnBackendDescriptor_t e = hp_dnn_make(o, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    hp_dnn_set_desc(o, e, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
    hp_dnn_set(o, e, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &h->mode);
    if (d->described) hp_dnn_set_desc(o, e, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, d->described);
    hp_dnn_finish(o, e);
    if (o->status != CUDNN_STATUS_SUCCESS) return; /* the heuristic knows no engine */
    cudnnBackendGetAttribute(e, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &got, NULL);
    h->n = got < MOST_NAMED ? got : MOST_NAMED;
    for (int64_t i = 0; i < h->n; i++) h->config[i] = hp_dnn_make(o, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    if (h->n) /* writes through its argument despite the const */
        cudnnBackendGetAttribute(e, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, h->n, &got,
                                 (void *)h->config);
}

/* GENERIC: engine 0, which computes anything, slowly. */
typedef enum sort { READY, COMPILED, GENERIC } sort;

static sort sort_of(cudnnBackendDescriptor_t config) {
    const facts f = facts_of(config);
    return f.index == 0 ? GENERIC : f.compiled ? COMPILED : READY;
}

static bool enough(const search *s, sort of) {
    if (of == COMPILED && s->n > 0 && s->compiled >= MOST_COMPILED) return true;
    if (of == GENERIC && s->n > 0 && s->found[0]->index != 0) return true;
    return s->n >= s->wanted;
}

/* Number of engines to compile next: as many as will be timed; if none has worked so far, as many again. */
static int batch(const search *s) {
    const int rest = MOST_COMPILED - s->compiled, n = rest > 0 ? rest : MOST_COMPILED;
    return n < s->wanted - s->n ? n : s->wanted - s->n;
}

static void consider_compiled(search *s, named *h, cudnnBackendDescriptor_t graph) {
    hp_dnn_engine *e[MOST_COMPILED];
    cudnnBackendDescriptor_t config[MOST_COMPILED];
    for (int64_t i = 0; i < h->n && !enough(s, COMPILED);) {
        int n = 0;
        for (const int most = batch(s); i < h->n && n < most; i++)
            if (sort_of(h->config[i]) == COMPILED &&
                (e[n] = candidate(s, h->config[i], h->mode == CUDNN_HEUR_MODE_FALLBACK)))
                config[n++] = h->config[i];
        hp_dnn_build_ahead(s->d, graph, e, n);
        for (int k = 0; k < n; k++) settle(s, e[k], &h->own, config[k]);
    }
}

static void consider_named(search *s, named *h, sort of) {
    for (int64_t i = 0; i < h->n && !enough(s, of); i++)
        if (sort_of(h->config[i]) == of)
            consider(s, &h->own, h->config[i], h->mode == CUDNN_HEUR_MODE_FALLBACK);
}

static void consider_sort(search *s, named *h, cudnnBackendDescriptor_t graph, sort of) {
    if (!h->asked && !enough(s, of)) ask(h, s->d, graph);
    if (of == COMPILED)
        consider_compiled(s, h, graph);
    else
        consider_named(s, h, of);
}

static void consider_all(search *s, cudnnBackendDescriptor_t graph) {
    enum { MODES = 2 };
    named *h = calloc(MODES, sizeof *h);
    HP_ASSERT(h);
    h[0].mode = CUDNN_HEUR_MODE_A, h[1].mode = CUDNN_HEUR_MODE_FALLBACK;
    for (int m = 0; m < MODES; m++) {
        consider_sort(s, &h[m], graph, READY);
        consider_sort(s, &h[m], graph, COMPILED);
    }
    for (int m = 0; m < MODES; m++) consider_sort(s, &h[m], graph, GENERIC);
    for (int m = 0; m < MODES; m++) hp_dnn_release(&h[m].own);
    free(h);
}

/* --- the choice --- */

static void consider_choice(search *s, cudnnBackendDescriptor_t graph, const json_t *choice) {
    hp_dnn_owner o = {0};
    const cudnnBackendDescriptor_t config = hp_dnn_config_of(&o, graph, s->d, choice);
    if (o.status == CUDNN_STATUS_SUCCESS)
        consider(s, &o, config, json_is_true(json_object_get(choice, HP_DNN_LAST_RESORT)));
    while (s->n > 0 && o.n > 0) hp_dnn_give(&o, o.made[o.n - 1], &s->found[0]->own);
    hp_dnn_release(&o);
}

static hp_status none(const search *s, const char *key, hp_error *err) {
    const char *text = s->last.text;
    return hp_fail(err, HP_EUNAVAIL,
                   "cuDNN has no engine for `%s`: of %d, %d are not exact enough, %d want more than %lld "
                   "bytes of workspace, %d refuse%s%.120s",
                   key, s->named, s->inexact, s->large, (long long)s->cap, s->unsupported, *text ? ": " : "",
                   text);
}

/* best -1: no engine. chosen: taken from the choices. */
static void keep(hp_dnn *d, search *s, int best, bool chosen, hp_dnn_engine **engine) {
    for (int i = 0; i < s->n; i++)
        if (i != best) hp_dnn_engine_free(s->found[i]);
    if (best < 0) return;
    *engine = s->found[best];
    (*engine)->next = d->engines;
    d->engines = *engine;
    json_object_set(d->choices, (*engine)->key, (*engine)->choice);
    if (!d->cuda) return;
    if ((*engine)->compiled && !(*engine)->kept) hp_dnn_kept_write(d, *engine, HP_DNN_MOST_KEPT);
    if (!chosen) hp_dnn_cache_write(d);
}

hp_status hp_dnn_engine_find(hp_dnn *d, const hp_dnn_conv *c, int64_t workspace, hp_dnn_engine **engine,
                             hp_error *err) {
    char key[HP_DNN_KEY];
    hp_dnn_key(c, key);
    for (hp_dnn_engine *e = d->engines; e; e = e->next) {
        *engine = e;
        if (strcmp(e->key, key) == 0 && e->workspace <= workspace) return HP_OK;
    }
    search s = {.d = d, .c = c, .cap = workspace, .wanted = d->handle ? MOST_TIMED : 1};
    hp_dnn_owner o = {0};
    const cudnnBackendDescriptor_t graph = hp_dnn_graph_of(&o, d->handle, c);
    const json_t *choice = json_object_get(d->choices, key);
    if (choice && o.status == CUDNN_STATUS_SUCCESS) consider_choice(&s, graph, choice);
    const bool chosen = s.n > 0;
    if (!chosen && o.status == CUDNN_STATUS_SUCCESS) consider_all(&s, graph);
    if (o.status != CUDNN_STATUS_SUCCESS) memcpy(s.last.text, o.text, sizeof s.last.text);
    hp_dnn_release(&o);
    int best = 0;
    if (s.n == 0) return none(&s, key, err);
    const hp_status timed = chosen ? HP_OK : hp_dnn_fastest(d, c, s.found, s.n, &best, err);
    keep(d, &s, timed == HP_OK ? best : -1, chosen, engine);
    return timed;
}
