/* tuning.h - one choice of kernels for all ranks, so that what they compute alike is alike to the last bit.
 */
#ifndef HP_TUNING_H
#define HP_TUNING_H

#include "exec/comm/comm.h"
#include "exec/device/device.h"

/* Collective: over all ranks, before the device's first task. Of ranks that chose differently the lowest
 * one's choice is everybody's. Errors: HP_ESTALL; those of adopt, on the rank that has them. */
hp_status hp_tuning_share(hp_comm *comm, const hp_tuning_ops *ops, hp_device *device, hp_error *err);

#endif
