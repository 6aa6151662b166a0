/* replay.h - programs that communicate as networks that hplan does not build, with dummy compute. They
 * measure a back end, or a mix of back ends, on that communication.
 *
 * `dlrm`: a recommendation model in hybrid parallelism (Naumov et al. 2019, section 3.1). Every rank holds
 * the embedding tables of some features for the whole batch and replicates the multilayer perceptrons. One
 * all-to-all moves the embeddings from their tables' ranks to their samples' ranks, another moves their
 * gradients back; the perceptrons' gradients are all-reduced. Layers are those of MLPerf's DLRM:
 * 13-512-256-dim below, -1024-1024-512-256-1 above the interactions.
 *
 * `moe`: transformer blocks of which every second has experts, one on each rank (Rajbhandari et al., ICML
 * 2022). Each of `layers` pairs exchanges its tokens twice forwards and twice backwards, and all-reduces the
 * gradients outside the experts. Embeddings and norms are left out. */
#ifndef HP_REPLAY_H
#define HP_REPLAY_H

#include "plan/program/program.h"
#include "plan/strategy/backend.h"

typedef enum hp_replay_kind { HP_REPLAY_DLRM, HP_REPLAY_MOE, HP_REPLAYS } hp_replay_kind;
enum { HP_REPLAY_KEYS = 4, HP_REPLAY_TEXT = 160 };

typedef struct hp_replay {
    hp_replay_kind kind;
    int64_t value[HP_REPLAY_KEYS]; /* in the order of the kind's keys */
} hp_replay;
/* dlrm: samples per rank, categorical features, elements of an embedding. */
enum { HP_DLRM_BATCH, HP_DLRM_TABLES, HP_DLRM_DIM };
/* moe: pairs of blocks, hidden size, tokens per rank, experts per token. */
enum { HP_MOE_LAYERS, HP_MOE_HIDDEN, HP_MOE_TOKENS, HP_MOE_TOP };

/* Parses "dlrm", "moe:hidden=1024,tokens=2048"; missing keys have their defaults. Errors: HP_EUSAGE. */
hp_status hp_replay_parse(const char *text, hp_replay *r, hp_error *err);
/* With every key. */
const char *hp_replay_text(const hp_replay *r, char out[HP_REPLAY_TEXT]);

/* Volume of one step in closed form: calls per rank; bytes of the whole data over all calls; bytes
 * that all ranks together must send. The data of an all-to-all is what one rank contributes,
 * including its own part. */
typedef struct hp_replay_volume {
    hp_collective what;
    int32_t calls;
    double bytes, sent_bytes;
} hp_replay_volume;
enum { HP_REPLAY_VOLUMES = 2 };
void hp_replay_volumes(const hp_replay *r, int32_t ranks, hp_replay_volume out[HP_REPLAY_VOLUMES]);

/* How it runs. Rates, per second and rank, set the duration of compute: the longer of operations and bytes.
 * `comm` has the back ends (no choice: the device's own). */
typedef struct hp_replay_way {
    int32_t ranks, per_node; /* per_node 0: all ranks are on one node */
    const hp_device_info *device;
    double flops_per_s, bytes_per_s;
    int32_t comm[HP_TRAFFICS];
} hp_replay_way;
/* Makes the program of one step. The graph is a placeholder: nothing of it is in the program. */
hp_program *hp_replay_program(hp_arena *arena, const hp_graph *g, const hp_replay *r,
                              const hp_replay_way *way);

#endif
