/* cpu_matrix.h - convolutions, transposed convolutions and linear layers of a deployed graph on the
 * processor. All are sums over taps of pixels times panels of weights (exec/device/kernels/panel.h); a linear
 * layer is a convolution with a filter as large as its input. */
#ifndef HP_CPU_MATRIX_H
#define HP_CPU_MATRIX_H

#include "exec/device/cpu/cpu_axis.h"
#include "exec/device/infer/infer_dynamic.h"
#include "exec/device/infer/infer_host.h"
#include "exec/device/infer/infer_units.h"
#include "exec/device/kernels/panel.h"

typedef struct hp_matrix {
    const hp_panel_kernels *kernels;
    hp_panels p;
    hp_panels_places at;
    hp_axis rows, cols;
    hp_matrix_units units;
    hp_panel_out out;
    const float *scale, *shift; /* quantised: per output; those of the pack, or of the current sample */
    hp_dynamic_places dynamic;  /* for inputs quantised at run time */
    hp_panel_run *run;          /* memory for the runs of one class of pixels */
} hp_matrix;

/* A class: output pixels that read the same taps, and the initial values of their sums, for all outputs. */
typedef struct hp_matrix_class {
    const hp_axis_group *row, *col;
    const void *init;
    const float *shift; /* quantised */
} hp_matrix_class;

hp_infer_prepare_fn hp_cpu_prepare_matrix;

/* Fills the layer's pack, once. Errors: as hp_constants_filter. */
hp_status hp_matrix_pack(hp_infer *in, const hp_bound *b, const hp_matrix *m, hp_error *err);

/* Computes a class's initial values and shifts from zero points and padding: in scratch,
 * or the pack's own. */
hp_matrix_class hp_matrix_class_of(const hp_matrix *m, const hp_bound *b, const hp_axis_group *row,
                                   const hp_axis_group *col);

/* Runs all classes of the task. */
void hp_matrix_run_panels(const hp_matrix *m, const hp_bound *b);
void hp_matrix_run_depthwise(const hp_matrix *m, const hp_bound *b);

#endif
