/* rotary.c - angles per position fall from 1 to 1 / base over the channels of a head. */
#include "exec/device/rotary.h"

#include <math.h>

int64_t hp_rotary_elems(const hp_bound *b) {
    const int64_t pixels = (int64_t)b->shape.full.oh * b->shape.full.ow;
    return b->layer->attention.rotary > 0 ? pixels * hp_head_channels(b->graph, b->layer) : 0;
}

void hp_rotary_fill(const hp_bound *b, float *turn) {
    const int channels = hp_head_channels(b->graph, b->layer), half = channels / 2;
    const int64_t pixels = (int64_t)b->shape.full.oh * b->shape.full.ow;
    for (int64_t p = 0; p < pixels; p++)
        for (int c = 0; c < half; c++) {
            const double angle = (double)p * pow(b->layer->attention.rotary, -(double)c / half);
            turn[p * channels + c] = (float)cos(angle);
            turn[p * channels + half + c] = (float)sin(angle);
        }
}
