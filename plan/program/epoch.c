/* epoch.c - closed forms of what a step's length means. */
#include "plan/program/epoch.h"

#include "networks/graph/layer.h"
#include "plan/program/work.h"
#include "plan/tiles/tile.h"

#include <math.h>

static const double HOUR_S = 3600, JOULES_PER_KWH = 3.6e6;

double hp_speedup(double images_per_s, double base_images_per_s) {
    return base_images_per_s > 0 ? images_per_s / base_images_per_s : NAN;
}

double hp_efficiency(double speedup, int gpus, int base_gpus) {
    return speedup * base_gpus / gpus;
}

double hp_model_flops(const hp_graph *g, bool train) {
    double flops = 0;
    for (int l = 1; l < g->n_layer; l++) {
        if (!hp_layer_is_matrix(&g->layer[l])) continue;
        const hp_box out = hp_box_whole(g, g->layer[l].out, 1);
        const hp_work_case c = hp_work_case_at(g, l, HP_TASK_FWD, &out);
        flops += hp_work_amounts(g, HP_F32, &c).flops;
    }
    return train ? 3 * flops : flops;
}

static double steps_of(const hp_epoch_question *q) {
    const int64_t steps = q->whole ? q->samples / q->batch : (q->samples + q->batch - 1) / q->batch;
    return steps > 0 ? (double)steps : NAN;
}

hp_epoch hp_epoch_of(const hp_epoch_question *q) {
    hp_epoch e;
    e.epoch_s = steps_of(q) * q->step_s;
    e.gpu_hours = e.epoch_s * q->gpus / HOUR_S;
    e.energy_kwh = q->tdp_w > 0 ? e.epoch_s * q->gpus * q->tdp_w / JOULES_PER_KWH : NAN;
    e.cost = q->price > 0 ? e.gpu_hours * q->price : NAN;
    e.flop_utilisation = q->device_flops_per_s > 0 ? q->sample_flops * (double)q->batch / q->step_s /
                                                         (q->gpus * q->device_flops_per_s)
                                                   : NAN;
    return e;
}
