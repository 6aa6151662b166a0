/* epoch.h - what a step time implies: speed-up and efficiency of a curve; time, energy and money of an epoch;
 * the model's share of the devices' arithmetic. */
#ifndef HP_EPOCH_H
#define HP_EPOCH_H

#include "networks/graph/graph.h"

/* Throughput against that of another number of devices, and the share of the devices' growth that it is. */
double hp_speedup(double images_per_s, double base_images_per_s);
double hp_efficiency(double speedup, int gpus, int base_gpus);

/* Operations of one update per sample: those of the matrix products (convolutions, linear layers), a
 * multiplication and an addition each. A backward pass has two products for each of the forward pass
 * (Chowdhery et al. 2022, PaLM, appendix B). Recomputation and halos do not count. */
double hp_model_flops(const hp_graph *g, bool train);

typedef struct hp_epoch_question {
    int64_t samples, batch;
    bool whole;    /* a last batch that is not full is dropped, as training does */
    double step_s; /* one batch takes this long */
    int gpus;
    double tdp_w;        /* thermal design power of a device; 0: not known */
    double price;        /* price of one device for an hour; 0: not given */
    double sample_flops; /* hp_model_flops */
    double device_flops_per_s;
} hp_epoch_question;

/* NaN: not known, or not asked for. */
typedef struct hp_epoch {
    double epoch_s, gpu_hours;
    double energy_kwh; /* devices alone, at TDP throughout: an upper bound without the hosts */
    double cost;       /* in the unit of `price` */
    double flop_utilisation;
} hp_epoch;
hp_epoch hp_epoch_of(const hp_epoch_question *q);

#endif
