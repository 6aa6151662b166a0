/* backend.h - what carries which messages, and how: the strategy's key `comm`.
 *
 * Its text is `auto`, one choice for everything (`nccl`), or one per kind of traffic, joined by a plus as a
 * comma separates keys: `halo:shm+allreduce:own.ring`. A choice is a back end; of a collective it may name
 * the algorithm of hplan's own steps after a dot. What a list leaves out is `auto`, which is the device's own
 * choice. */
#ifndef HP_BACKEND_H
#define HP_BACKEND_H

#include "base/status.h"
#include "plan/collectives/collective.h"
#include "machines/device/device_kind.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Traffic that may have its own back end: three kinds between a network's layers and stages, and every
 * collective. Gradients, and the metrics that end a step, are all-reduces. */
typedef enum hp_traffic {
    HP_TRAFFIC_HALO,  /* messages between the parts of a stage */
    HP_TRAFFIC_STAGE, /* messages from stage to stage */
    HP_TRAFFIC_STATS, /* all-reduces of batch norm's sums */
#define COLLECTIVE(ID, ...) HP_TRAFFIC_##ID,
#include "plan/collectives/collectives.def"
    HP_TRAFFICS
} hp_traffic;
extern const char *const hp_traffic_names[HP_TRAFFICS];

static inline bool hp_traffic_collective(hp_traffic t) {
    return t >= HP_TRAFFIC_STATS;
}

/* Has a network's step any? The other collectives are those of programs by hand. */
static inline bool hp_traffic_of_networks(hp_traffic t) {
    return t <= HP_TRAFFIC_ALLREDUCE;
}

/* A choice is HP_COMM_AUTO, or made of a back end and an algorithm (LIBRARY: left open). */
enum { HP_COMM_AUTO = 0, HP_COMM_ALGORITHM = 8, HP_COMM_TEXT = 400 /* bytes of the longest text */ };
static inline int32_t hp_comm_choice(hp_backend backend, hp_algorithm algorithm) {
    return (int32_t)(1u + (unsigned)backend) | ((int32_t)algorithm << HP_COMM_ALGORITHM);
}
/* The algorithm that a choice names; LIBRARY: none. */
static inline hp_algorithm hp_comm_algorithm(int32_t choice) {
    return (hp_algorithm)(choice >> HP_COMM_ALGORITHM);
}

hp_status hp_comm_parse(const char *value, int32_t choice[HP_TRAFFICS], hp_error *err);
/* A choice shared by all traffic of networks applies to every other traffic as well, so that there is one way
 * to write it. */
void hp_comm_settle(int32_t choice[HP_TRAFFICS]);
bool hp_comm_is_auto(const int32_t choice[HP_TRAFFICS]);
void hp_comm_text(const int32_t choice[HP_TRAFFICS], char *out, size_t n);

/* The back end of a choice for that traffic, on a device (NULL: one with every back end, none its own) that
 * `clients` ranks share. Messages by `own` are MPI's. */
hp_backend hp_comm_backend(int32_t choice, hp_traffic traffic, const hp_device_info *device, int clients);

/* Does it name a back end that wants a device for each rank? */
bool hp_comm_wants_devices(int32_t choice);

#endif
