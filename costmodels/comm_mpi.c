/* comm_mpi.c - MPI libraries that accept GPU memory: the time of a message by size (rows `regime`), the
 * collectives that go through host memory (rows `stage`), and the algorithm by which Open MPI sums there.
 *
 * Three regimes: eager (the processor writes arriving data into GPU memory), direct (the NIC reads GPU
 * memory, or one side copies first), pipelined (blocks go to the host, over the wire and back, one after
 * another). Open MPI's decisions: ompi/mca/coll/tuned/coll_tuned_decision_fixed.c of 5.0, all-reduce of a
 * commutative operation. */
#include "costmodels/models.h"

#include <math.h>
#include <stdio.h>

const hp_row *hp_mpi_regime(const hp_cost_table *t, const hp_machine *m, bool same_node, double bytes) {
    static const char *const regimes[] = {"eager", "direct", "pipelined"};
    char key[80];
    const hp_row *row = NULL;
    for (size_t i = 0; *m->mpi && i < sizeof regimes / sizeof *regimes; i++) {
        snprintf(key, sizeof key, "%s %s %s", m->mpi, same_node ? "near" : "far", regimes[i]);
        const hp_row *next = hp_rows_find(t, HP_ROW_REGIME, (same_node ? &m->intra : &m->inter)->name, key);
        if (next) row = next;
        if (next && (next->y[HP_REGIME_MOST] <= 0 || bytes <= next->y[HP_REGIME_MOST])) break;
    }
    return row;
}

double hp_mpi_message_seconds(const hp_row *regime, double link_bytes_per_s, double bytes) {
    const double block = regime->y[HP_REGIME_BLOCK], copies = regime->y[HP_REGIME_COPIES],
                 stage = regime->y[HP_REGIME_STAGE], alone = block > 0 ? fmin(block, bytes) : bytes,
                 rate = stage > 0 ? fmin(stage, link_bytes_per_s) : link_bytes_per_s;
    return regime->y[HP_REGIME_LATENCY] + (copies > 0 ? alone / copies : 0) + bytes / rate;
}

const hp_row *hp_mpi_stage(const hp_cost_table *t, const hp_machine *m, hp_collective what, double bytes) {
    char key[80];
    if (!*m->mpi) return NULL;
    snprintf(key, sizeof key, "%s %s", m->mpi, hp_collective_infos[what].name);
    const hp_row *row = hp_rows_find(t, HP_ROW_STAGE, m->inter.name, key);
    return row && (row->y[HP_STAGE_MOST] <= 0 || bytes <= row->y[HP_STAGE_MOST]) ? row : NULL;
}

/* --- Open MPI's choice --- */

enum { NONOVERLAPPING = 2, DOUBLING, RING, SEGMENTED_RING, RABENSEIFNER, RULES = 4 };

/* Rules for fewer than `ranks` ranks: the algorithm for fewer than `below` bytes; 0: for the rest. */
static const struct {
    int ranks;
    struct {
        double below;
        int algorithm;
    } rule[RULES + 3];
} tuned[] = {{4,
              {{8, RING},
               {4096, DOUBLING},
               {8192, RING},
               {16384, DOUBLING},
               {65536, RING},
               {262144, SEGMENTED_RING},
               {0, RABENSEIFNER}}},
             {8, {{16, RING}, {8192, DOUBLING}, {0, RABENSEIFNER}}},
             {16, {{8192, DOUBLING}, {0, RABENSEIFNER}}},
             {32, {{64, SEGMENTED_RING}, {4096, DOUBLING}, {0, RABENSEIFNER}}},
             {64, {{128, SEGMENTED_RING}, {0, RABENSEIFNER}}},
             {128, {{262144, DOUBLING}, {0, RABENSEIFNER}}},
             {256, {{131072, NONOVERLAPPING}, {262144, DOUBLING}, {0, RABENSEIFNER}}},
             {512, {{4096, NONOVERLAPPING}, {0, RABENSEIFNER}}},
             {2048, {{2048, NONOVERLAPPING}, {16384, DOUBLING}, {0, RABENSEIFNER}}},
             {4096, {{2048, NONOVERLAPPING}, {4096, SEGMENTED_RING}, {16384, DOUBLING}, {0, RABENSEIFNER}}},
             {0, {{2048, NONOVERLAPPING}, {16384, SEGMENTED_RING}, {32768, DOUBLING}, {0, RABENSEIFNER}}}};

static hp_mpi_algorithm algorithm_of(int number) {
    switch (number) {
    case NONOVERLAPPING:
        return (hp_mpi_algorithm){HP_ALGORITHM_BINOMIAL, true};
    case DOUBLING:
        return (hp_mpi_algorithm){HP_ALGORITHM_DOUBLING, false};
    case RABENSEIFNER:
        return (hp_mpi_algorithm){HP_ALGORITHM_RABENSEIFNER, false};
    default:
        return (hp_mpi_algorithm){HP_ALGORITHM_RING, false};
    }
}

hp_mpi_algorithm hp_mpi_tuned_allreduce(int ranks, double bytes) {
    int i = 0, k = 0;
    while (tuned[i].ranks > 0 && ranks >= tuned[i].ranks) i++;
    while (tuned[i].rule[k].below > 0 && bytes >= tuned[i].rule[k].below) k++;
    return algorithm_of(tuned[i].rule[k].algorithm);
}
