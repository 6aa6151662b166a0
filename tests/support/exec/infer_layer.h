/* infer_layer.h - one drawn layer of a deployed graph, with drawn stores, quantisation and constants. Its
 * tensors are whole; it runs between any boxes of them. */
#ifndef HP_TESTS_INFER_LAYER_H
#define HP_TESTS_INFER_LAYER_H

#include "exec/device/infer/infer_host.h"
#include "exec/device/kernels/kernels.h"
#include "tests/support/plan/single_layer.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* Tensors 0 .. n_in-1 are inputs, tensor n_in is the output; parameters are those of the layer's operator. */
typedef struct cell {
    single s;
    throws d;
    hp_param param[HP_NORM_PARAMS];
    hp_dtype real;
    hp_qparam q[MOST_IN + 1];
    unsigned char *data[MOST_IN + 1]; /* whole tensors, as stored */
    hp_arena *arena;
    hp_constants *constants;
    hp_program program;
    hp_device_config config;
    hp_infer infer;
    float *factor, *bias;
    unsigned char *pack;
} cell;

hp_dtype dtype_of(const cell *c, int tensor);
int64_t elems_of(const cell *c, int tensor);
double value_at(const void *data, hp_dtype dtype, hp_qparam q, int64_t i);
double value_of(const cell *c, int tensor, int64_t i);
void draw_element(cell *c, int tensor, int64_t i);
void cell_free(cell *c);
cell *cell_new(uint64_t seed, int op);

/* Copies a box of a tensor out of the whole, or back into it. */
void move_box(cell *c, int tensor, const hp_box *box, unsigned char *packed, bool back);

/* A part: its operands and its task. */
typedef struct part {
    hp_bound b;
    hp_box in[MOST_IN], out;
    hp_infer_kernel kernel;
    void *memory[MOST_IN + 1];
    unsigned char *pack;
} part;

void part_start(cell *c, part *p, const hp_box *out, bool in_place);
void part_end(part *p);

/* Computes a box of the output into `data` of the output tensor. */
void run_part(cell *c, const hp_box *out, bool in_place);
void run_whole(cell *c);
const char *cell_said(const cell *c);

/* The activation, or a replacement for a discontinuous one, for which the rounding of a sum
 * would decide the side. */
int32_t continuous_act(int32_t act);

#endif
