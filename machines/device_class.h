/* device_class.h - kinds of devices and links: what data sheets say of them, and which kind a name means. */
#ifndef HP_DEVICE_CLASS_H
#define HP_DEVICE_CLASS_H

#include "networks/graph/precision.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct hp_device_class {
    char name[32]; /* "a100-40", "cpu": the class a cost-table row names */
    char like
        [32]; /* the class whose efficiencies stand in where cost tables have no row of this one; "": none */
    bool is_cpu;
    bool guessed;         /* nobody said how fast it is: rates are the least there are */
    int64_t memory_bytes; /* per device; for a CPU, of the node, shared by its devices */
    double flops_per_s;   /* peak multiply and add in float32, outside of matrix units */
    double tf32_flops_per_s, bf16_flops_per_s, fp16_flops_per_s,
        int8_ops_per_s; /* of dense matrices; 0: as float32 */
    double bytes_per_s; /* memory bandwidth */
    double launch_s;    /* overhead of one task */
} hp_device_class;

typedef struct hp_link_class {
    char name[32]; /* "shm", "nvlink", "pcie", "ib-hdr": the class a cost-table row names */
    double latency_s;
    double bytes_per_s; /* one direction */
} hp_link_class;
bool hp_link_is_nvlink(const hp_link_class *l);

/* A GPU, and the links of a node of such GPUs where nothing else is said. */
typedef struct hp_gpu_model {
    hp_device_class device;
    hp_link_class peer; /* between two GPUs of a node */
    hp_link_class nic;
    double tdp_w; /* thermal design power, the most it draws for long */
} hp_gpu_model;

/* The GPU of a name, as classes are called ("a100-40") or as drivers print it ("NVIDIA A100-SXM4-40GB"), whatever its
 * case: all words of the class's name are among the name's. *sure becomes false where words are missing ("A100",
 * which has 40 or 80 GB): then the memory decides, if it is not 0, else the order of the table. NULL: unknown, a
 * part of a GPU (MIG), or another product of nearly that name ("RTX 3090 Ti"). */
const hp_gpu_model *hp_gpu_model_find(const char *name, int64_t memory_bytes, bool *sure);
/* The GPU whose figures are nearest to those of `d` that are not 0; with none, an A100. */
const hp_gpu_model *hp_gpu_model_nearest(const hp_device_class *d);
/* The table, for tests and messages; NULL after the last. */
const hp_gpu_model *hp_gpu_model_at(int i);

/* The class that stands in for one of the table: "h100" for "h100-nvl", for which "a100-40" does; "" of others. */
const char *hp_device_class_like(const char *class);

/* Of the class that `d` is, in watts; 0: it is none. */
double hp_device_class_tdp(const hp_device_class *d);

/* What is known of a device that is no class: the rates in `d` that are 0 become those of `model`, matrix rates in
 * proportion to its float32. */
void hp_device_class_assume(hp_device_class *d, const hp_gpu_model *model);

/* Of a device of which float32's rate or the memory's is not known (0), the least of all classes stand in, matrices without units
 * of their own; true: both are known. */
bool hp_device_class_suppose(hp_device_class *d);

/* "NVIDIA L40S (rev. 2)" -> "nvidia-l40s-rev-2": as cost tables name classes. Of one that is too long, the whole words that have room. */
void hp_device_class_slug(const char *name, char *out, size_t n);

/* Peak in a precision: of matrix units, else float32's. */
double hp_device_class_peak(const hp_device_class *d, hp_prec prec);
/* Has a GPU units for the precision? CPUs compute in all of them, somehow. */
bool hp_device_class_has(const hp_device_class *d, hp_prec prec);

/* A link by name, with its usual rate; NULL: unknown. */
const hp_link_class *hp_link_class_find(const char *name);

#endif
