/* codec_gain.h - bytes saved by compressed messages, their cost, and where compression pays. */
#ifndef HP_CODEC_GAIN_H
#define HP_CODEC_GAIN_H

#include "costmodels/table.h"
#include "plan/program/program.h"

/* Gain for one kind of traffic, over all ranks of a replica in one step. */
typedef struct hp_codec_gain {
    hp_codec codec; /* 0: nothing is encoded */
    int64_t messages;
    /* bytes moved between ranks; for a sum, the least that any algorithm must move (hp_collective_volume) */
    double plain_bytes, coded_bytes;
    double codec_s; /* seconds of all encode and decode tasks */
} hp_codec_gain;

/* Uses the table's task costs. gain: HP_TRAFFICS entries. */
void hp_codec_gains(hp_arena *arena, const hp_program *p, const hp_graph *g, const hp_cost_table *t,
                    const hp_machine *m, hp_codec_gain *gain);

/* Solves plain_bytes / b = coded_bytes / b + codec_s: below this bandwidth b, codes arrive before plain
 * messages would, if neither is hidden. 0: never, because codes are not smaller; INFINITY: codes cost
 * nothing. */
double hp_codec_break_even_bytes_per_s(const hp_codec_gain *gain);

#endif
