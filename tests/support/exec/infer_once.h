/* infer_once.h - runs a deployed network on one device, one rank, one image at a time. */
#ifndef HP_TESTS_INFER_ONCE_H
#define HP_TESTS_INFER_ONCE_H

#include "exec/data/weights/constants.h"
#include "exec/device/device.h"
#include "networks/deploy/deploy.h"
#include "plan/lower/lower.h"

#include <stdlib.h>
#include <string.h>

typedef struct infer_once {
    hp_arena *memory;
    hp_graph *g; /* deployed */
    hp_program *program;
    hp_constants *constants;
    const hp_device_ops *ops;
    hp_device *device;
    unsigned char *arena;
} infer_once;

/* device: "cpu" or "ref"; weights: a safetensors file with the graph's names. */
hp_status infer_once_open_as(infer_once *r, const hp_graph *graph, const hp_deploy_options *deploy,
                             const char *device, const char *weights, hp_error *err);

/* In fp32. */
hp_status infer_once_open(infer_once *r, const hp_graph *graph, const char *device, const char *weights,
                          hp_error *err);

/* image and *out: (H, W, C). Tasks run in an order that honours their dependencies. */
hp_status infer_once_run(infer_once *r, double *image, double *out, hp_error *err);
void infer_once_close(infer_once *r);

#endif
