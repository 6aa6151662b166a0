/* lower.h - from a network and a strategy to the task program. */
#ifndef HP_LOWER_H
#define HP_LOWER_H

#include "plan/lower/lower_choice.h"
#include "machines/machine.h"
#include "plan/program/program.h"

typedef struct hp_lower_options {
    hp_mode mode;
    hp_dtype dtype; /* HP_F32 or HP_F64 */
    int64_t batch;
    const double *unit_cost; /* per unit, for balanced cuts; NULL = multiply-adds plus bytes */
    /* The device whose back ends comm= may name, whose own back end comm=auto means, and whose memory is
     * planned; NULL: any back end, MPI and the CPU's memory, for proofs. */
    const hp_device_info *device;
    const hp_machine *machine; /* where ranks sit: for collectives in two levels; NULL: does not matter */
    const hp_comm_table
        *comm;  /* what comm=auto means where it was measured; NULL: nowhere. Wants a machine. */
    bool place; /* false: skip memory placement (arena_bytes = live_bytes), for the search */
} hp_lower_options;

/* Lowers a legal strategy to its program. The program lives in `arena`. Errors: HP_EPLAN with the reject's
 * text. */
hp_status hp_lower(hp_arena *arena, const hp_graph *g, const hp_strategy *s, const hp_lower_options *o,
                   hp_program **program, hp_error *err);

/* Does zfp, where the strategy asks for it, make every message of a program smaller? Else E-COMPRESS: its
 * blocks of 4 pixels by 4 channels are padded. Other codecs send a message as it is where they would not make
 * it smaller. */
bool hp_codes_shrink(const hp_program *p, const hp_graph *g, const hp_strategy *s, hp_reject *why);

/* Writes the balanced cut into a strategy that has none (see hp_lower_options.unit_cost). */
void hp_strategy_fill_cut(const hp_graph *g, const double *unit_cost, hp_strategy *s);

#endif
