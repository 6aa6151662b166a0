/* codec_gain.h - what compressed messages save on their way, what that costs, and where it pays. */
#ifndef HP_CODEC_GAIN_H
#define HP_CODEC_GAIN_H

#include "costmodels/table.h"
#include "plan/program/program.h"

/* Of one kind of traffic, all ranks of a replica in one step. */
typedef struct hp_codec_gain {
    hp_codec codec; /* 0: nothing is encoded */
    int64_t messages;
    double plain_bytes,
        coded_bytes; /* moved between ranks; of a sum, as much as it must (plan/collectives/volume.c) */
    double codec_s;  /* of all encode and decode tasks */
} hp_codec_gain;

/* By task costs of the table. gain: HP_TRAFFICS. */
void hp_codec_gains(hp_arena *arena, const hp_program *p, const hp_graph *g, const hp_cost_table *t,
                    const hp_machine *m, hp_codec_gain *gain);

/* plain_bytes / b = coded_bytes / b + codec_s: at fewer bytes per second than this b codes arrive before plain messages
 * would, where nothing hides either. 0: codes are not smaller, and never do; INFINITY: they cost nothing. */
double hp_codec_break_even_bytes_per_s(const hp_codec_gain *gain);

#endif
