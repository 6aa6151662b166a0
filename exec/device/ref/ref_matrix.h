/* ref_matrix.h - inside of exec/device/ref/ref_matrix.c and ref/ref_bytes.c: a matrix layer by its
 * definition. */
#ifndef HP_REF_MATRIX_H
#define HP_REF_MATRIX_H

#include "exec/device/infer/infer_dynamic.h"
#include "exec/device/infer/infer_host.h"
#include "exec/device/infer/infer_units.h"
#include "plan/memory/panels.h"

typedef struct hp_ref_matrix {
    hp_panels p;
    hp_panels_places at;
    hp_infer_op op;
    hp_matrix_units units;
    const float *scale;        /* quantised: per output; of the pack, or of the sample in hand */
    hp_dynamic_places dynamic; /* for inputs quantised at run time */
} hp_ref_matrix;

hp_infer_prepare_fn hp_ref_prepare_matrix;

/* Element (sample, row, column, channel) of the output's box. */
typedef struct hp_ref_element {
    int64_t n;
    int32_t y, x, c;
} hp_ref_element;

/* One product: indices of the input and of the weight, and the input's channel. */
typedef void hp_ref_product_fn(void *sum, const hp_ref_matrix *m, const hp_bound *b, int64_t x, int64_t w,
                               int32_t channel);
/* Calls `add` for the products of a tap that is inside the map, tap by tap; then `end`, unless NULL. */
typedef void hp_ref_tap_fn(void *sum);
void hp_ref_products(const hp_ref_matrix *m, const hp_bound *b, hp_ref_element e, hp_ref_product_fn *add,
                     hp_ref_tap_fn *end, void *sum);

/* Output element `i` of a layer that reads bytes. */
void hp_ref_bytes_element(const hp_ref_matrix *m, const hp_bound *b, hp_ref_element e, int64_t i);

static inline const void *hp_ref_terms(const hp_bound *b, int64_t place) {
    return (const unsigned char *)b->pack.forward + place;
}

#endif
