/* mix_cost.h - the cost of unequal devices to a strategy, and the gain from uneven stages. */
#ifndef HP_MIX_COST_H
#define HP_MIX_COST_H

#include "sim/search/evaluate.h"

typedef struct hp_mix_cost {
    int class;      /* the class of devices on which alone it would be fastest */
    double alike_s; /* seconds of a step there, without slow devices; 0: it does not fit */
    double even_s;  /* on this machine, with stages for equal devices; 0: no stages, or it does not fit */
    char even_cut[HP_STRATEGY_TEXT]; /* the strategy with that cut */
    double equal_s;  /* on this machine, with equal shares and tiles; 0: it already has those, or it does not
                      * fit */
    double uneven_s; /* on this machine, with better-suited shares and tiles; 0: none are known */
    char uneven[HP_STRATEGY_TEXT]; /* these keys */
} hp_mix_cost;

/* Computes the costs for a strategy that fits, with its cut, under the conditions of `setup`. Results live in
 * `arena`. */
hp_status hp_mix_cost_of(hp_arena *arena, const hp_eval_setup *setup, const hp_strategy *s, hp_mix_cost *out,
                         hp_error *err);

/* As text: "all devices a100-80: 141 ms, 1.36x as fast; even stages (9:9:9:8): 324 ms, 1.12x as slow". */
void hp_mix_cost_text(const hp_mix_cost *c, const hp_machine *m, double step_s, char *out, size_t n);

#endif
