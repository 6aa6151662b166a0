/* run_tuning.h - one choice of kernels for all ranks, so that equal computations give equal bits. */
#ifndef HP_RUN_TUNING_H
#define HP_RUN_TUNING_H

#include "exec/comm/comm.h"
#include "exec/device/device.h"

/* Collective: over all ranks, before the device's first task. Where ranks chose differently, the lowest
 * rank's choice applies to all. Errors: HP_ESTALL; those of importing, on the rank that has them. */
hp_status hp_tuning_share(hp_comm *comm, const hp_tuning_ops *ops, hp_device *device, hp_error *err);

#endif
