/* infer_matrix.h - one drawn matrix layer of a deployed graph: geometry, stores, quantisation, activation and
 * constants drawn, its tensors whole, and run between any boxes of them on any device. */
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
    float weight_error; /* relative, of weights stored in halves */
} matrix_cell;

hp_layer *layer_of(matrix_cell *m);
void open_matrix_constants(matrix_cell *m);
matrix_cell *matrix_cell_begin(uint64_t seed);

/* Its layer's geometry is there: draws the rest. */
matrix_cell *matrix_cell_end(matrix_cell *m);
matrix_cell *matrix_cell_new(uint64_t seed);

/* Tensors of the program's type: the same values whatever that is. */
void fill_tensors(matrix_cell *m, hp_dtype real);
void matrix_cell_free(matrix_cell *m);

/* A task between boxes: memory of just the size that is planned. */
typedef struct matrix_part {
    hp_bound b;
    hp_box in, out;
    hp_infer_kernel kernel;
    void *pack, *scratch;
} matrix_part;

void prepare_matrix_part(matrix_cell *m, matrix_part *p, int device);
void matrix_part_end(matrix_part *p);

/* Computes a box of the output into the whole; kernels NULL: the processor's own. */
void run_matrix_part(matrix_cell *m, const hp_box *out, int device, const hp_panel_kernels *kernels);

/* Of the whole output: a copy. */
unsigned char *run_matrix(matrix_cell *m, int device, const hp_panel_kernels *kernels, size_t *bytes);

#endif
