/* cpu_matrix.h - convolutions, transposed convolutions and linear layers of a deployed graph on the
 * processor: all are sums over taps of pixels times panels of weights (exec/device/kernels/panel.h), a linear layer being a
 * convolution whose filter is as large as its input. */
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
    const float *scale, *shift; /* quantised: per output; of the pack, or of the sample in hand */
    hp_dynamic_places dynamic;  /* of inputs quantised at run time */
    hp_panel_run *run;          /* room for the taps of one class of pixels */
} hp_matrix;

/* Output pixels that read the same taps; what their sums begin with, for all outputs. */
typedef struct hp_matrix_class {
    const hp_axis_group *row, *col;
    const void *init;
    const float *shift; /* quantised */
} hp_matrix_class;

hp_infer_prepare_fn hp_cpu_prepare_matrix;

/* Fills the layer's pack, once. Errors: as hp_constants_filter. */
hp_status hp_matrix_pack(hp_infer *in, const hp_bound *b, const hp_matrix *m, hp_error *err);

/* What zero points and padding make of a class: in scratch, or the pack's own. */
hp_matrix_class hp_matrix_class_of(const hp_matrix *m, const hp_bound *b, const hp_axis_group *row,
                                   const hp_axis_group *col);

/* Of all classes of the task. */
void hp_matrix_run_panels(const hp_matrix *m, const hp_bound *b);
void hp_matrix_run_depthwise(const hp_matrix *m, const hp_bound *b);

#endif
