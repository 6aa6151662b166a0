/* serve_plan.h - the plan of a network that only answers: what `simulate --mode infer --strategy` writes, for
 * one precision. */
#ifndef HP_SERVE_PLAN_H
#define HP_SERVE_PLAN_H

#include "base/arena.h"
#include "sim/search/evaluate.h"

typedef struct serve_request {
    const char *net, *prec, *strategy, *device; /* device NULL: the plan's, or the default */
    int32_t image_h, image_w;
    int64_t classes, batch;     /* 0: the default */
    const char *onnx;           /* the network's file, instead of `net`; NULL */
    const char *float_layers;   /* kept real in low precision; NULL */
    const hp_plan *of;          /* the network of this plan, instead of net, onnx, image and classes; NULL */
    const hp_eval_setup *under; /* `of`: what it was predicted under */
} serve_request;

/* Plans it for this machine and writes it, with its prediction, to `path`. Errors: HP_EPLAN, HP_EUNAVAIL,
 * HP_EUSAGE (no such network, strategy or precision), HP_ECREATE, HP_EIO. */
hp_status serve_plan_write(hp_arena *arena, const serve_request *r, const char *path, hp_plan *plan,
                           hp_error *err);

/* This combination is not possible, others may be: no plan, a missing back end. */
bool serve_impossible(hp_status s);

#endif
