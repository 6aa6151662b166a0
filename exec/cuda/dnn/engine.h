/* engine.h - inside of dnn.h: which of cuDNN's engines may compute an operation, and which one does. */
#ifndef HP_ENGINE_H
#define HP_ENGINE_H

#include "exec/cuda/dnn/dnn_graph.h"

#include <jansson.h>

enum { HP_DNN_KEY = 208, HP_DNN_PATH = 4096 };
enum { HP_DNN_MOST_FILE = 16 << 20, HP_DNN_MOST_KEPT = 256 << 20 }; /* bytes, of one file, of kept plans */

/* An engine with its plan for one operation. */
typedef struct hp_dnn_engine {
    struct hp_dnn_engine *next;
    char key[HP_DNN_KEY];
    hp_dnn_owner own;
    cudnnBackendDescriptor_t plan;
    int64_t index, workspace;
    bool tensor_cores, compiled; /* compiled: at run time */
    bool last_resort;            /* the generic one, or named by the heuristic of what works at all */
    bool kept;                   /* the plan was made from the cache's text */
    char *text;                  /* of a plan that was built ahead and is to be made of it; else NULL */
    json_t *choice;              /* {"engine": 46, "knobs": {"2": 8, ...}}; HP_DNN_LAST_RESORT: true */
} hp_dnn_engine;
#define HP_DNN_LAST_RESORT "last-resort"

struct hp_dnn {
    hp_cuda *cuda;        /* NULL: of a description */
    cudnnHandle_t handle; /* of cuda */
    bool compile;
    char gpu[256];
    hp_dnn_owner own;
    cudnnBackendDescriptor_t described; /* the device's properties; NULL: of cuda */
    hp_dnn_engine *engines;             /* in use */
    json_t *choices;                    /* key to choice */
    json_t *shared;                     /* keys of which ranks have told each other */
    hp_dnn_plan *plans;
};

/* "fwd f32 strict n8 i56x56x64 o56x56x64 k3x3 s1x1 d1x1 g1 p1,1,1,1 a16 bias add relu"; of a part of a map
 * " v3584,200704" besides. */
const char *hp_dnn_key(const hp_dnn_conv *c, char out[HP_DNN_KEY]);

/* The engine for an operation: that of the choices if it is acceptable, else the fastest, or where nothing
 * can be timed the first, of those that are; the choice is kept. Errors: HP_EUNAVAIL, why all were refused.
 */
hp_status hp_dnn_engine_find(hp_dnn *d, const hp_dnn_conv *c, int64_t workspace, hp_dnn_engine **engine,
                             hp_error *err);
void hp_dnn_engine_free(hp_dnn_engine *e);
/* Make the plan of an engine, which has its key and choice and none yet: by building it, an error then sticks
 * in its owner; of its text or what the cache keeps, false and as before where there is none that cuDNN
 * takes.
 */
void hp_dnn_engine_build(const hp_dnn *d, hp_dnn_engine *e, cudnnBackendDescriptor_t config);
bool hp_dnn_engine_recall(const hp_dnn *d, hp_dnn_engine *e);

/* Enqueues. Errors: HP_EUNAVAIL. */
hp_status hp_dnn_engine_run(const hp_dnn *d, const hp_dnn_conv *c, const hp_dnn_engine *e,
                            const hp_dnn_data *data, hp_error *err);

/* dnn/tune.c: the fastest of n engines, of those that do what they should; the first where there is no memory
 * to try them in. Errors: HP_EUNAVAIL, none does, or what the GPU ran into. */
hp_status hp_dnn_fastest(hp_dnn *d, const hp_dnn_conv *c, hp_dnn_engine *const *engine, int n, int *best,
                         hp_error *err);

/* dnn.c: plans that use the engine of this key use that of the choice from now on. Errors: HP_EUNAVAIL. */
hp_status hp_dnn_replan(hp_dnn *d, const char *key, hp_error *err);

/* dnn/cache.c: choices from the user's cache, and back into it where it lacks some. Never an error. */
void hp_dnn_cache_read(hp_dnn *d);
void hp_dnn_cache_write(hp_dnn *d);
/* Files there: "-....plan" makes .../cudnn-<GPU and version>-....plan; NULL: there is none of this user's, or
 * it is too large or damaged; written whole or not at all. */
void hp_dnn_cache_path(const hp_dnn *d, const char *rest, char *out, size_t n);
json_t *hp_dnn_cache_get(const char *path);
void hp_dnn_cache_put(const char *path, const json_t *o);

/* dnn/dnn_ahead.c: texts of the plans of n compiled engines, built beside each other where there are cores. */
void hp_dnn_build_ahead(const hp_dnn *d, cudnnBackendDescriptor_t graph, hp_dnn_engine *const *engine, int n);

/* dnn/kept.c: cuDNN's text of a plan, NULL: it has none. */
char *hp_dnn_plan_text(cudnnBackendDescriptor_t plan);
/* cuDNN's text of a compiled plan for the operation and choice of `e`, the caller's to free;
 * NULL: there is none that is undamaged and of this GPU and cuDNN. Into the cache, which keeps `most` bytes.
 */
char *hp_dnn_kept_text(const hp_dnn *d, const hp_dnn_engine *e);
void hp_dnn_kept_write(const hp_dnn *d, const hp_dnn_engine *e, int64_t most);

/* dnn/dnn_choice.c: choices with what they are of, and those of such a document: none of another GPU or cuDNN, or
 * of a damaged one. */
json_t *hp_dnn_choices_document(const hp_dnn *d, json_t *choices);
json_t *hp_dnn_choices_of(const hp_dnn *d, const json_t *document);
/* An engine's configuration as JSON and back. */
json_t *hp_dnn_choice_of(cudnnBackendDescriptor_t config, int64_t engine);
cudnnBackendDescriptor_t hp_dnn_config_of(hp_dnn_owner *o, cudnnBackendDescriptor_t graph, const hp_dnn *d,
                                          const json_t *choice);

#endif
