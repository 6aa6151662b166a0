/* engine.h - inside of dnn.h: which of cuDNN's engines may compute an operation, and which one does. */
#ifndef HP_ENGINE_H
#define HP_ENGINE_H

#include "exec/cuda/dnn/dnn_graph.h"

#include <jansson.h>

enum { HP_DNN_KEY = 208, HP_DNN_PATH = 4096 };
enum { HP_DNN_MOST_FILE = 16 << 20, HP_DNN_MOST_KEPT = 256 << 20 }; /* bytes of one file; of all kept plans */

/* An engine with its plan for one operation. */
typedef struct hp_dnn_engine {
    struct hp_dnn_engine *next;
    char key[HP_DNN_KEY];
    hp_dnn_owner own;
    cudnnBackendDescriptor_t plan;
    int64_t index, workspace;
    bool tensor_cores, compiled; /* compiled: at run time */
    bool last_resort;            /* generic, or named by the fallback heuristic */
    bool kept;                   /* the plan was made from the cached text */
    char *text;                  /* text of a plan built ahead, still to be turned into a plan; else NULL */
    json_t *choice;              /* {"engine": 46, "knobs": {"2": 8, ...}}; HP_DNN_LAST_RESORT: true */
} hp_dnn_engine;
#define HP_DNN_LAST_RESORT "last-resort"

struct hp_dnn {
    hp_cuda *cuda;        /* NULL: opened from a description */
    cudnnHandle_t handle; /* handle on that GPU */
    bool compile;
    char gpu[256];
    hp_dnn_owner own;
    cudnnBackendDescriptor_t described; /* the device's properties; NULL: the GPU's own */
    hp_dnn_engine *engines;             /* in use */
    json_t *choices;                    /* key to choice */
    json_t *shared;                     /* keys that ranks have announced to each other */
    hp_dnn_plan *plans;
};

/* For example "fwd f32 strict n8 i56x56x64 o56x56x64 k3x3 s1x1 d1x1 g1 p1,1,1,1 a16 bias add relu"; part of a
 * larger map adds " v3584,200704". */
const char *hp_dnn_key(const hp_dnn_conv *c, char out[HP_DNN_KEY]);

/* Finds the engine for an operation: the chosen one if it is acceptable, else the fastest acceptable one, or
 * the first where nothing can be timed. Remembers the choice. Errors: HP_EUNAVAIL, why all were refused. */
hp_status hp_dnn_engine_find(hp_dnn *d, const hp_dnn_conv *c, int64_t workspace, hp_dnn_engine **engine,
                             hp_error *err);
void hp_dnn_engine_free(hp_dnn_engine *e);
/* Make the plan of an engine that has its key and choice but no plan yet. The first builds it; an error
 * stays in its owner. The second makes it from its text or the cached one; false, with nothing changed,
 * where cuDNN accepts none. */
void hp_dnn_engine_build(const hp_dnn *d, hp_dnn_engine *e, cudnnBackendDescriptor_t config);
bool hp_dnn_engine_recall(const hp_dnn *d, hp_dnn_engine *e);

/* Enqueues. Errors: HP_EUNAVAIL. */
hp_status hp_dnn_engine_run(const hp_dnn *d, const hp_dnn_conv *c, const hp_dnn_engine *e,
                            const hp_dnn_data *data, hp_error *err);

/* dnn/tune.c: the fastest of n engines that compute correctly; the first if memory does not suffice to try
 * them. Errors: HP_EUNAVAIL, no engine is correct, or the GPU failed. */
hp_status hp_dnn_fastest(hp_dnn *d, const hp_dnn_conv *c, hp_dnn_engine *const *engine, int n, int *best,
                         hp_error *err);

/* dnn.c: replans all operations with this key to use its choice. Errors: HP_EUNAVAIL. */
hp_status hp_dnn_replan(hp_dnn *d, const char *key, hp_error *err);

/* dnn/cache.c: reads choices from the user's cache, and writes those that it lacks. Never an error. */
void hp_dnn_cache_read(hp_dnn *d);
void hp_dnn_cache_write(hp_dnn *d);
/* Files in the cache: "-....plan" becomes .../cudnn-<GPU and version>-....plan. Reading: NULL if there is no
 * file of this user, or it is too large or damaged. Writing: all or nothing. */
void hp_dnn_cache_path(const hp_dnn *d, const char *rest, char *out, size_t n);
json_t *hp_dnn_cache_get(const char *path);
void hp_dnn_cache_put(const char *path, const json_t *o);

/* dnn/dnn_ahead.c: builds the plans of n compiled engines in parallel and keeps their texts. */
void hp_dnn_build_ahead(const hp_dnn *d, cudnnBackendDescriptor_t graph, hp_dnn_engine *const *engine, int n);

/* dnn/kept.c: cuDNN's text of a plan; NULL: it has none. */
char *hp_dnn_plan_text(cudnnBackendDescriptor_t plan);
/* Reads cuDNN's text of a compiled plan for the operation and choice of `e`; the caller frees it. NULL: none
 * that is intact and of this GPU and cuDNN. Writing keeps at most `most` bytes in the cache. */
char *hp_dnn_kept_text(const hp_dnn *d, const hp_dnn_engine *e);
void hp_dnn_kept_write(const hp_dnn *d, const hp_dnn_engine *e, int64_t most);

/* dnn/dnn_choice.c: choices as a document that names their GPU and cuDNN, and back. A damaged document, or
 * one of another GPU or cuDNN, has none. */
json_t *hp_dnn_choices_document(const hp_dnn *d, json_t *choices);
json_t *hp_dnn_choices_of(const hp_dnn *d, const json_t *document);
/* Converts an engine's configuration to JSON and back. */
json_t *hp_dnn_choice_of(cudnnBackendDescriptor_t config, int64_t engine);
cudnnBackendDescriptor_t hp_dnn_config_of(hp_dnn_owner *o, cudnnBackendDescriptor_t graph, const hp_dnn *d,
                                          const json_t *choice);

#endif
