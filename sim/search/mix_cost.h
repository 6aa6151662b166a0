/* mix_cost.h - what it costs a strategy that a machine's devices are not all alike, and what uneven stages regain. */
#ifndef HP_MIX_COST_H
#define HP_MIX_COST_H

#include "sim/search/evaluate.h"

typedef struct hp_mix_cost {
    int class;      /* of devices, on which alone it would be fastest */
    double alike_s; /* seconds of a step there, none of them slow; 0: it does not fit */
    double even_s;  /* here, with stages as for equal devices; 0: without stages, or it does not fit */
    char even_cut[HP_STRATEGY_TEXT]; /* the strategy with that cut */
    double equal_s;  /* here, with equal shares and tiles; 0: it has those, or it does not fit */
    double uneven_s; /* here, with shares and tiles that suit the devices better; 0: none are known */
    char uneven[HP_STRATEGY_TEXT]; /* these keys */
} hp_mix_cost;

/* Of a strategy that fits, with its cut, under the conditions of `setup`. Results live in `arena`. */
hp_status hp_mix_cost_of(hp_arena *arena, const hp_eval_setup *setup, const hp_strategy *s, hp_mix_cost *out,
                         hp_error *err);

/* In words: "all devices a100-80: 141 ms, 1.36x as fast; even stages (9:9:9:8): 324 ms, 1.12x as slow". */
void hp_mix_cost_text(const hp_mix_cost *c, const hp_machine *m, double step_s, char *out, size_t n);

#endif
