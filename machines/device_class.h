/* device_class.h - kinds of devices and links: their data-sheet figures, and which kind a name means. */
#ifndef HP_DEVICE_CLASS_H
#define HP_DEVICE_CLASS_H

#include "networks/graph/precision.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct hp_device_class {
    char name[32]; /* "a100-40", "cpu": the class named in cost-table rows */
    char like
        [32]; /* the class whose efficiencies stand in if cost tables have no rows of this one; "": none */
    bool is_cpu;
    bool guessed;         /* its speed is unknown: rates are the lowest of all classes */
    int64_t memory_bytes; /* per device; for a CPU, the node's, shared by its devices */
    double flops_per_s;   /* peak float32 rate outside matrix units */
    double tf32_flops_per_s, bf16_flops_per_s, fp16_flops_per_s,
        int8_ops_per_s; /* dense matrices; 0: same rate as float32 */
    double bytes_per_s; /* memory bandwidth */
    double launch_s;    /* overhead of one task */
} hp_device_class;

typedef struct hp_link_class {
    char name[32]; /* "shm", "nvlink", "pcie", "ib-hdr": the class named in cost-table rows */
    double latency_s;
    double bytes_per_s; /* one direction */
} hp_link_class;
bool hp_link_is_nvlink(const hp_link_class *l);

/* A GPU, and the default links of a node of such GPUs. */
typedef struct hp_gpu_model {
    hp_device_class device;
    hp_link_class peer; /* between two GPUs of a node */
    hp_link_class nic;
    double tdp_w; /* thermal design power: the maximum sustained power */
} hp_gpu_model;

/* Finds a GPU by its class name ("a100-40") or its driver name ("NVIDIA A100-SXM4-40GB"), ignoring case: the
 * name must contain all words of the class's name. *sure becomes false if words are missing ("A100", which
 * has 40 or 80 GB). The memory then decides, if it is not 0, otherwise the order of the table. NULL: unknown,
 * a part of a GPU (MIG), or another product with nearly that name ("RTX 3090 Ti"). */
const hp_gpu_model *hp_gpu_model_find(const char *name, int64_t memory_bytes, bool *sure);
/* The GPU whose figures are closest to the nonzero ones of `d`; an A100 if all are 0. */
const hp_gpu_model *hp_gpu_model_nearest(const hp_device_class *d);
/* Row i of the table, for tests and messages; NULL after the last. */
const hp_gpu_model *hp_gpu_model_at(int i);

/* The class that stands in for `class`: "h100" for "h100-nvl", and "a100-40" for "h100" in turn; "" if
 * none. */
const char *hp_device_class_like(const char *class);

/* TDP of `d`'s class, in watts; 0 if it has no class. */
double hp_device_class_tdp(const hp_device_class *d);

/* Completes a device without a class: rates in `d` that are 0 become those of `model`, matrix rates in
 * proportion to its float32 rate. */
void hp_device_class_assume(hp_device_class *d, const hp_gpu_model *model);

/* If the float32 rate or the memory rate is unknown (0), substitutes the lowest of all classes, without
 * matrix units. Returns true if both are known. */
bool hp_device_class_suppose(hp_device_class *d);

/* Converts a name to the form used in cost tables: "NVIDIA L40S (rev. 2)" -> "nvidia-l40s-rev-2". If it is
 * too long, keeps the whole words that fit. */
void hp_device_class_slug(const char *name, char *out, size_t n);

/* Peak rate in a precision: of the matrix units, otherwise float32's. */
double hp_device_class_peak(const hp_device_class *d, hp_prec prec);
/* Does a GPU have units for the precision? CPUs compute in all precisions. */
bool hp_device_class_has(const hp_device_class *d, hp_prec prec);

/* A link by name, with its usual rate; NULL: unknown. */
const hp_link_class *hp_link_class_find(const char *name);

#endif
