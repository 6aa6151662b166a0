/* backend.h - which library carries which messages: the strategy's key `comm`.
 *
 * Its text is `auto`, one back end for everything (`nccl`), or one per kind of traffic, joined by a plus as a
 * comma separates keys: `halo:mpi+allreduce:nccl`. What a list leaves out is `auto`, which is the device's
 * own choice. */
#ifndef HP_BACKEND_H
#define HP_BACKEND_H

#include "plan/base/status.h"
#include "plan/device/device.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What may have a back end of its own. */
typedef enum hp_traffic {
    HP_TRAFFIC_HALO,      /* messages between the parts of a stage */
    HP_TRAFFIC_STAGE,     /* messages from stage to stage */
    HP_TRAFFIC_ALLREDUCE, /* sums of gradients, and of the metrics that end a step */
    HP_TRAFFIC_STATS,     /* sums of batch norm */
    HP_TRAFFICS
} hp_traffic;

enum { HP_COMM_AUTO = 0 }; /* a choice is this, or 1 + hp_backend */

hp_status hp_comm_parse(const char *value, int32_t choice[HP_TRAFFICS], hp_error *err);
bool hp_comm_is_auto(const int32_t choice[HP_TRAFFICS]);
void hp_comm_text(const int32_t choice[HP_TRAFFICS], char *out, size_t n);

/* The back end of a choice on a device (NULL: one with MPI for its own) that `clients` ranks share. */
hp_backend hp_comm_backend(int32_t choice, const hp_device_info *device, int clients);

#endif
