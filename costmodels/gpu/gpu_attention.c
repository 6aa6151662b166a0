/* gpu_attention.c - tries all halvings of a block of queries and takes the fastest. */
#include "costmodels/gpu/gpu_attention.h"

#include "costmodels/gpu/tiles.h"

#include <math.h>

/* Tensor cores have 16 rows; kernels are compiled for channels in steps of 32 and keys in steps of 64
 * (Dao-AILab/flash-attention). */
static const double LEAST_ROWS = 16, CHANNELS = 32, KEYS = 64;

typedef struct blocks {
    double busy, seconds;
} blocks;

static double up_to(double n, double multiple) {
    return multiple * ceil(n / multiple);
}

static blocks cut_into(const hp_attend_rates *a, const hp_attend_shape *s, double rows, double penalty) {
    const double n = ceil(s->queries / rows) * s->groups, waves = ceil(n / a->units);
    const double keys = s->causal ? s->keys + rows / 2 : up_to(s->keys, KEYS);
    const double score = 2 * s->products * up_to(s->channels, CHANNELS) + a->softmax;
    return (blocks){n / (waves * a->units),
                    waves * a->units * rows * (keys + a->fill) * score / (a->flops_per_s * penalty)};
}

static blocks best_blocks(const hp_attend_rates *a, const hp_attend_shape *s) {
    blocks best = {0, INFINITY};
    const int halvings = hp_halvings(a->rows, LEAST_ROWS);
    for (int i = 0; i <= halvings; i++) {
        const blocks x = cut_into(a, s, ldexp(a->rows, -i), pow(a->penalty, i));
        if (x.seconds < best.seconds) best = x;
    }
    return best;
}

double hp_attend_seconds(const hp_attend_rates *a, const hp_attend_shape *s) {
    return best_blocks(a, s).seconds;
}

double hp_attend_busy(const hp_attend_rates *a, const hp_attend_shape *s) {
    return best_blocks(a, s).busy;
}
