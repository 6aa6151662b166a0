/* framework_rows.h - rows of cost tables specific to frameworks, one file each in
 * costmodels/data/frameworks. */
#ifndef HP_FRAMEWORK_ROWS_H
#define HP_FRAMEWORK_ROWS_H

extern const char hp_rows_gpu_aware[], /* MPI that reads the device's memory */
    hp_rows_cudnn[],                   /* convolutions of the libraries that frameworks call, by device */
    hp_rows_pytorch_1[], hp_rows_pytorch_compiled[], hp_rows_mxnet[], hp_rows_tensorflow[];

/* All of them, NULL-terminated. */
extern const char *const hp_framework_tables[];

#endif
