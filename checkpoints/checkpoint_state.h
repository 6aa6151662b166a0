/* checkpoint_state.h - the state that the next step needs, and which of it this rank saves.
 *
 * State is trained parameters, the optimiser's state, this rank's share of the running statistics, and what
 * codecs carry from step to step.
 *
 * It is split into pieces: ranges of parameters, which another plan of the same network can look up by
 * name. Each element of weights and optimiser state is home on exactly one rank, and replicas with
 * equal data share the work. With sync=local replicas differ, so every rank saves all it has. A pure
 * function of the program. */
#ifndef HP_CHECKPOINT_STATE_H
#define HP_CHECKPOINT_STATE_H

#include "base/arena.h"
#include "networks/graph/optimizer.h"
#include "plan/program/program.h"

typedef enum hp_state_kind {
    HP_STATE_WEIGHTS,
    HP_STATE_STATISTICS, /* the true value is the sum over the homes */
    HP_STATE_CARRY,      /* residuals of error feedback and low-rank factors; valid only for
                          * this rank of this plan */
    HP_STATE_OPTIMIZER,  /* first kind of optimiser state, whatever the optimiser (hp_optimizer_state) */
    HP_STATE_KINDS = HP_STATE_OPTIMIZER + HP_OPTIMIZER_STATES
} hp_state_kind;
/* "weights", "statistics", "carry", "momentum", ... */
extern const char *const hp_state_names[HP_STATE_KINDS];

typedef struct hp_state_piece {
    int32_t kind;         /* hp_state_kind */
    int32_t param;        /* index in the graph; for carries: index within the role */
    int32_t buffer;       /* index in the role */
    bool home;            /* this rank saves it */
    bool start;           /* statistics: under another plan this piece starts with the saved value,
                           * all others with zeros */
    int64_t first, count; /* elements of the parameter */
    int64_t at;           /* index of its first element in the buffer */
} hp_state_piece;

/* Lists all non-empty pieces of a rank, by kind, then parameter; *n: their number. */
hp_state_piece *hp_state_pieces(hp_arena *arena, const hp_program *p, const hp_graph *g, int role,
                                int replica, int *n);

/* Size in bytes of the pieces that this rank saves: the size of the copy made for a save
 * in the background. */
int64_t hp_state_bytes(const hp_program *p, const hp_state_piece *piece, int n);

/* A piece's name in a file. "momentum/4608/layer1.0.conv1.weight": kind, first element, parameter.
 * Carries: "carry/0/2". */
const char *hp_state_name(hp_arena *arena, const hp_graph *g, const hp_state_piece *piece);
/* Parses such a name into *kind and *first. Returns where the parameter's name begins, NULL: invalid name. */
const char *hp_state_parse(const char *name, int32_t *kind, int64_t *first);

#endif
