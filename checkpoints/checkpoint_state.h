/* checkpoint_state.h - what the next step needs of a rank's memory, and which of it this rank saves: trained parameters, the
 * optimiser's state of them, its share of the running statistics, and what codecs carry from step to step.
 *
 * In pieces: ranges of parameters, which any other plan of the same network can be given by name. Each element of weights
 * and of the optimiser's state is home on exactly one rank, but with sync=local, where each replica has its own: then all ranks save
 * what they have. Replicas that hold the same divide it among each other. A pure function of the program. */
#ifndef HP_CHECKPOINT_STATE_H
#define HP_CHECKPOINT_STATE_H

#include "base/arena.h"
#include "networks/graph/optimizer.h"
#include "plan/program/program.h"

typedef enum hp_state_kind {
    HP_STATE_WEIGHTS,
    HP_STATE_STATISTICS, /* the true value is the sum over the homes */
    HP_STATE_CARRY,      /* residuals of error feedback, low-rank factors: of this rank of this plan alone */
    HP_STATE_OPTIMIZER,  /* from here on: of any optimiser (hp_optimizer_state) */
    HP_STATE_KINDS = HP_STATE_OPTIMIZER + HP_OPTIMIZER_STATES
} hp_state_kind;
/* "weights", "statistics", "carry", "momentum", ... */
extern const char *const hp_state_names[HP_STATE_KINDS];

typedef struct hp_state_piece {
    int32_t kind;   /* hp_state_kind */
    int32_t param;  /* of the graph; of carries: counted within the role */
    int32_t buffer; /* of the role */
    bool home;      /* this rank saves it */
    bool start; /* statistics: with a plan that others saved it begins with the true value, else with zeros */
    int64_t first, count; /* elements of the parameter */
    int64_t at;           /* its first element in the buffer */
} hp_state_piece;

/* All pieces of a rank, by kind, then parameter. *n of them; empty ones are left out. */
hp_state_piece *hp_state_pieces(hp_arena *arena, const hp_program *p, const hp_graph *g, int role,
                                int replica, int *n);

/* Bytes of those that this rank saves: the copy that is written while steps go on. */
int64_t hp_state_bytes(const hp_program *p, const hp_state_piece *piece, int n);

/* A piece's name in a file: "momentum/4608/layer1.0.conv1.weight", kind, first element, parameter; "carry/0/2". */
const char *hp_state_name(hp_arena *arena, const hp_graph *g, const hp_state_piece *piece);
/* The other way: *kind, *first and where the parameter's name begins; NULL: not such a name. */
const char *hp_state_parse(const char *name, int32_t *kind, int64_t *first);

#endif
