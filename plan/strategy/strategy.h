/* strategy.h - a whole strategy as a plain value, its canonical string, its legality with reasons. */
#ifndef HP_STRATEGY_H
#define HP_STRATEGY_H

#include "plan/codec/codec.h"
#include "plan/strategy/backend.h"
#include "plan/strategy/reject.h"
#include "base/status.h"
#include "networks/graph/graph.h"
#include "plan/tiles/tile.h"

#include <stdbool.h>
#include <stdint.h>

enum { HP_MAX_DEGREE = 65536, HP_MAX_PASSES = 4096 /* in a step: each has a task for every layer */ };
/* The longest text: 256 cuts, 32 tile grids and 3 times 64 weights of 5-digit numbers, 256 seats of 3, and a
 * word or number of each other key. */
enum { HP_MAX_STAGES = 256, HP_MAX_SPATIAL = 32, HP_MAX_SEATS = 256, HP_STRATEGY_TEXT = 4800 };

typedef enum hp_sched {
#define SCHED(ID, id) HP_SCHED_##ID,
#include "plan/strategy/sched.def"
    HP_SCHEDS
} hp_sched;
typedef enum hp_recompute {
    HP_RECOMPUTE_NONE,
    HP_RECOMPUTE_BOUNDARY,   /* keep unit inputs */
    HP_RECOMPUTE_FULL,       /* keep stage inputs */
    HP_RECOMPUTE_EXCEPT_LAST /* full, but for the last micro-batch */
} hp_recompute;

typedef enum hp_tail { HP_TAIL_OWN, HP_TAIL_SHARED } hp_tail;
typedef enum hp_overlap {
    HP_OVERLAP_NONE,    /* a layer waits for its halo */
    HP_OVERLAP_INTERIOR /* convolutions compute what needs no halo while it flies, then the borders */
} hp_overlap;
typedef enum hp_place {
    HP_PLACE_BLOCK,  /* ranks fill node after node */
    HP_PLACE_CYCLIC, /* dealt to the nodes in turn */
    HP_PLACE_TILE,   /* neighbouring tiles of a stage together */
    HP_PLACE_LIST    /* as written */
} hp_place;
/* How ranks share attention's tokens: see plan/strategy/sequence.h. */
typedef enum hp_seq { HP_SEQ_RING, HP_SEQ_A2A } hp_seq;
typedef enum hp_sync { HP_SYNC_ALLREDUCE, HP_SYNC_PS, HP_SYNC_LOCAL } hp_sync;
typedef enum hp_bn { HP_BN_SYNC, HP_BN_ALL, HP_BN_LOCAL } hp_bn;

/* Members of one key, or of keys that go together, are one struct. */
typedef struct hp_strategy {
    int32_t dp, stages, chunks, micro;
    struct {
        int32_t n;                                          /* spatial stages, from the first on; 0: none */
        int32_t rows[HP_MAX_SPATIAL], cols[HP_MAX_SPATIAL]; /* tiles of each */
        int32_t tail;                                       /* hp_tail */
        int32_t halo;                                       /* halo-bearing layers per exchange */
        int32_t overlap;                                    /* hp_overlap */
    } sp;
    /* Proportions: of the samples that each data replica takes, of the tiles' rows and columns
     * (plan/tiles/tile.h) */
    hp_proportions by[HP_AXIS_C];
    int32_t cp, ldp;
    int32_t tp; /* ranks that share linear layers and heads: see plan/strategy/sequence.h */
    struct {
        int32_t ranks; /* that share the tokens */
        int32_t by;    /* hp_seq */
    } seq;
    int32_t bp;                /* branches of a stage's graph on ranks of their own (sub-graph parallelism) */
    int32_t gems;              /* passes per update; 1 without GEMS */
    int32_t bn;                /* hp_bn */
    int32_t clients;           /* processes per device */
    int32_t sched;             /* hp_sched */
    int32_t recompute;         /* hp_recompute */
    int32_t prec;              /* hp_prec (networks/deploy/deploy.h) */
    int32_t comm[HP_TRAFFICS]; /* hp_comm_choice, or HP_COMM_AUTO */
    struct {
        int32_t how;     /* hp_sync: see plan/strategy/axes/axis_sync.h */
        int32_t servers; /* sync=ps: members that serve, the first ones; 0: all */
        int32_t local;   /* sync=local: steps from one average to the next; else 0 */
    } sync;
    struct {
        int32_t stage;    /* of ZeRO: see plan/strategy/axes/axis_zero.h */
        int32_t prefetch; /* stage 3: buckets gathered ahead */
        int32_t keep;     /* stage 3: 1: they stay for the whole step */
    } zero;
    int32_t compress[HP_TRAFFICS]; /* hp_codec; 0: sent as it is */
    struct {
        int32_t n;    /* of the image, one after another through the first layers; 1: whole */
        int32_t deep; /* units that the strips go through; 0: as many as the first stage has */
    } strips;
    struct {
        int32_t how;                /* hp_place: which rank sits where (machines/placement.h) */
        int32_t n_seat;             /* of HP_PLACE_LIST: of a replica's places, or of all */
        int32_t seat[HP_MAX_SEATS]; /* per place, a permutation */
    } place;
    struct {
        int32_t n; /* 0 = balanced by cost; else stages*chunks entries */
        /* units per virtual stage (stage-major over the model: first entry holds the input) */
        int32_t units[HP_MAX_STAGES];
    } cut;
    int64_t fuse_bytes; /* gradient bucket */
} hp_strategy;

hp_strategy hp_strategy_default(void);
hp_status hp_strategy_parse(const char *text, hp_strategy *s, hp_error *err);
/* Canonical string, defaults omitted; "dp=1" for the all-default strategy. `out` holds HP_STRATEGY_TEXT
 * bytes. */
const char *hp_strategy_text(const hp_strategy *s, char *out);
/* The keys that replace those of one strategy to make it another, as "recompute=full,micro=4", and how many
 * they are; a default is written out. `out` holds HP_STRATEGY_TEXT bytes. */
int hp_strategy_change(const hp_strategy *from, const hp_strategy *to, char *out);
/* The other way: `items` is "key=value,key=value". */
hp_status hp_strategy_replace(hp_strategy *s, const char *items, hp_error *err);
bool hp_strategy_equal(const hp_strategy *a, const hp_strategy *b);
/* The same strategy without what makes no difference: trailing stages of one tile, the schedule of a pipeline
 * of one position (every order is gradient accumulation there). */
hp_strategy hp_strategy_canonical(const hp_strategy *s);

/* Data replicas that are alike (dp * clients, or one where shares make them parts of it), ranks of the world,
 * devices they occupy; INT32_MAX where that is too small a number. See plan/strategy/layout.h. */
int hp_strategy_replicas(const hp_strategy *s);
int hp_strategy_ranks(const hp_strategy *s);
int hp_strategy_devices(const hp_strategy *s);

/* Everything but memory. n_devices 0 = no cap. Returns true when legal. */
bool hp_strategy_legal(const hp_strategy *s, const hp_graph *g, int64_t batch, int n_devices, hp_reject *why);

/* Has the device (NULL: one that has all) the back ends and the codecs that the strategy names, and can it
 * train, or infer, in its precision? Else E-COMM, E-COMPRESS, E-PREC. */
bool hp_device_allows(const hp_device_info *device, const hp_strategy *s, bool infer, hp_reject *why);

/* Can a device (NULL: one that can all) train, or infer, in a precision? `why` may be NULL. */
bool hp_prec_allowed(int32_t prec, bool infer, const hp_device_info *device, hp_reject *why);

/* Has the device (NULL: one that has all) kernels for the network's layers, as wide as they are? Else
 * E-LAYER; hp_lower refuses it then. */
bool hp_device_has_layers(const hp_device_info *device, const hp_graph *g, hp_reject *why);

/* Can the network be trained? Not when a layer has no backward pass (E-TRAIN); hp_lower refuses it then. */
bool hp_graph_trains(const hp_graph *g, hp_reject *why);

/* Whose validity rules: hplan's, or those and MPI4DL's besides (plan/strategy/rules_mpi4dl.h). */
typedef enum hp_rules { HP_RULES_HPLAN, HP_RULES_MPI4DL } hp_rules;
extern const char *const hp_rules_names[]; /* "hplan", "mpi4dl", NULL */
bool hp_rules_allow(hp_rules rules, const hp_strategy *s, const hp_graph *g, int64_t batch, int n_devices,
                    hp_reject *why);

/* Samples come in whole groups of this many: replicas (the sum of their shares) * passes * micro-batches *
 * slices of a micro-batch. */
int64_t hp_strategy_divisor(const hp_strategy *s);
/* Smallest batch >= at_least that the strategy divides. */
int64_t hp_strategy_batch(const hp_strategy *s, int64_t at_least);

/* Contiguous partition of n_unit costs into n_part parts, the largest part as small as possible (exact
 * dynamic programming); among equals the earlier parts are the lighter. counts[n_part] gets units per part,
 * each >= 1. */
void hp_cut_balanced(const double *unit_cost, int n_unit, int n_part, int32_t *counts);

#endif
