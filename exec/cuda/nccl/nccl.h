/* nccl.h - messages and all-reduces by NCCL, as work of the GPU's streams. */
#ifndef HP_NCCL_H
#define HP_NCCL_H

#include "exec/comm/comm.h"

/* Of data in `memory`, beside `inner`, which carries everything else and which it takes over. Point-to-point messages have one
 * stream and all-reduces another; each stream's operations are given in an order that the program proves free
 * of deadlock over all ranks (plan/program/lanes.h). Communicators are
 * non-blocking: whatever hangs or fails is found by polling, and aborted. Collective: over all ranks. Errors:
 * HP_EUNAVAIL (two ranks on one GPU, which NCCL does not allow). Source: NCCL user guide, "Fault
 * tolerance", "Group calls". */
hp_status hp_comm_nccl(hp_comm *inner, const hp_memory *memory, hp_comm **comm, hp_error *err);

#endif
