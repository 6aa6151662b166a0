/* infer_dynamic.h - matrix layers that quantise their input at run time, sample by sample, as ONNX's
 * DynamicQuantizeLinear does:
 *
 *     lo = min(0, min x), hi = max(0, max x), scale = (hi - lo) / 255 (1 where that is 0),
 *     zero = sat(rint(-lo / scale)), q = sat(rint(x / scale) + zero)
 *
 * in float32, on every device. The rest is a quantised layer with a real output. A sample with a non-finite
 * number, or with a range that overflows, has no scale: all its outputs are NaN. */
#ifndef HP_INFER_DYNAMIC_H
#define HP_INFER_DYNAMIC_H

#include "exec/device/infer/infer_loops.h"
#include "plan/memory/panels.h"

/* Layout of scratch: the current sample and its terms. */
typedef struct hp_dynamic_places {
    const hp_infer_loops *loops;
    const float *weight_scale; /* per output, in the pack */
    float *scale;              /* the same, times the sample's scale */
    uint8_t *map;
    int64_t elems, outs;
} hp_dynamic_places;

hp_dynamic_places hp_dynamic_places_of(const hp_panels *p, const hp_panels_places *at, const hp_bound *b,
                                       const hp_infer_loops *loops);
/* Quantises sample `n` of the input, fills `scale`. Returns the zero point. */
int32_t hp_dynamic_sample(const hp_dynamic_places *d, const hp_bound *b, int64_t n);
/* The task for that sample alone, with bytes as input. */
hp_bound hp_dynamic_bound(const hp_dynamic_places *d, const hp_bound *b, int64_t n);

#endif
