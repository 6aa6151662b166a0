/* infer_matrix.h - one drawn matrix layer of a deployed graph, with drawn geometry, stores, quantisation,
 * activation and constants. Its tensors are whole; it runs between any boxes of them on any device. */
#ifndef HP_TESTS_INFER_MATRIX_H
#define HP_TESTS_INFER_MATRIX_H

#include "exec/device/cpu/cpu_matrix.h"
#include "exec/device/ref/ref_matrix.h"
#include "plan/memory/memory_device.h"
#include "tests/support/exec/infer_layer.h"

enum { ON_REF, ON_CPU };

typedef struct matrix_cell {
    cell c; /* its tensors, constants and random numbers */
    hp_buffer buffer[1];
    int32_t pack_of[2];
    hp_role role;
    float weight_error; /* relative error of weights stored as halves */
} matrix_cell;

hp_layer *layer_of(matrix_cell *m);
void open_matrix_constants(matrix_cell *m);
matrix_cell *matrix_cell_begin(uint64_t seed);

/* Draws everything except the layer's geometry, which must be set. */
matrix_cell *matrix_cell_end(matrix_cell *m);
matrix_cell *matrix_cell_new(uint64_t seed);

/* Fills tensors of the program's type: the same values for any type. */
void fill_tensors(matrix_cell *m, hp_dtype real);
void matrix_cell_free(matrix_cell *m);

/* A task between boxes, with exactly the planned memory. */
typedef struct matrix_part {
    hp_bound b;
    hp_box in, out;
    hp_infer_kernel kernel;
    void *pack, *scratch;
} matrix_part;

void prepare_matrix_part(matrix_cell *m, matrix_part *p, int device);
void matrix_part_end(matrix_part *p);

/* Computes a box of the output into the whole; kernels NULL: the processor's default. */
void run_matrix_part(matrix_cell *m, const hp_box *out, int device, const hp_panel_kernels *kernels);

/* Runs the whole output; returns a copy of it. */
unsigned char *run_matrix(matrix_cell *m, int device, const hp_panel_kernels *kernels, size_t *bytes);

#endif
