/* export_nccl.c - writes a configuration for NCCL's example tuner plugin (NCCL_TUNER_PLUGIN,
 * NCCL_TUNER_CONFIG_FILE), in which the first line that matches a call decides its algorithm and protocol.
 *
 * Rows do not contain the protocol, but the file must. It is taken from NCCL's own model of A100s (2.30,
 * src/graph/tuning.cc), by size, for one node and for several. */
#include "costmodels/tuning/tuning_export.h"

#include <math.h>
#include <stdint.h>

static const char *nccl_name(hp_collective what, hp_algorithm a) {
    static const char *const names[HP_COLLECTIVES][HP_ALGORITHMS] = {
        [HP_COLLECTIVE_ALLREDUCE] = {[HP_ALGORITHM_RING] = "ring", [HP_ALGORITHM_TWO_TREES] = "tree"},
        [HP_COLLECTIVE_ALL_GATHER] = {[HP_ALGORITHM_RING] = "ring"},
        [HP_COLLECTIVE_REDUCE_SCATTER] = {[HP_ALGORITHM_RING] = "ring"},
        [HP_COLLECTIVE_BROADCAST] = {[HP_ALGORITHM_RING] = "ring"},
        [HP_COLLECTIVE_REDUCE] = {[HP_ALGORITHM_RING] = "ring"},
    };
    return names[what][a];
}

static bool nccl_has(hp_collective what, hp_algorithm a) {
    return a == HP_ALGORITHM_LIBRARY ? nccl_name(what, HP_ALGORITHM_RING) != NULL
                                     : nccl_name(what, a) != NULL;
}

/* The protocol for fewer than `below` bytes. */
typedef struct protocol {
    const char *name;
    uint64_t below;
} protocol;
enum { PROTOCOLS = 3 };
static const protocol protocols[2][PROTOCOLS] = {
    {{"ll", UINT64_C(4) << 20}, {"ll128", UINT64_C(32) << 20}, {"simple", UINT64_MAX}},    /* one node */
    {{"ll", UINT64_C(128) << 10}, {"ll128", UINT64_C(128) << 20}, {"simple", UINT64_MAX}}, /* several */
};

/* Writes sizes low <= bytes <= high, split where the protocol changes. */
static int write_range(FILE *f, const hp_tuned_group *g, hp_algorithm a, uint64_t low, uint64_t high) {
    const int nodes = (g->ranks + g->per_node - 1) / g->per_node;
    const protocol *p = protocols[nodes > 1];
    int written = 0;
    for (int i = 0; i < PROTOCOLS && low <= high; i++) {
        const uint64_t last = p[i].below == UINT64_MAX || high < p[i].below ? high : p[i].below - 1;
        if (low > last) continue;
        fprintf(f, "%s,%ju,%ju,%s,%s,-1,%d,%d,-1,-1\n", hp_collective_infos[g->what].name, (uintmax_t)low,
                (uintmax_t)last, nccl_name(g->what, a), p[i].name, nodes, g->ranks);
        written++;
        if (last == UINT64_MAX) break;
        low = last + 1;
    }
    return written;
}

/* Sizes for which NCCL's own decision is the fastest get no line. */
static int write_group(FILE *f, const hp_tuned_group *g) {
    int written = 0;
    for (int i = 0; i < g->n; i++) {
        const uint64_t low = (uint64_t)ceil(g->tuned[i].bytes),
                       next = i + 1 < g->n ? (uint64_t)ceil(g->tuned[i + 1].bytes) : 0;
        if (g->tuned[i].algorithm != HP_ALGORITHM_LIBRARY)
            written += write_range(f, g, g->tuned[i].algorithm, low, next ? next - 1 : UINT64_MAX);
    }
    return written;
}

hp_status hp_export_nccl_tuner(hp_arena *arena, const hp_cost_table *t, FILE *f, hp_tuning_report *r,
                               hp_error *err) {
    static const hp_tunable nccl = {HP_WIRE_NCCL, nccl_has};
    hp_tuned_group *g;
    const int n = hp_tuned_groups(arena, t, &nccl, &g, r);
    fprintf(
        f,
        "# collective_type,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks,numPipeOps,regBuff\n"
        "# algorithms as measured; protocols as NCCL's model switches them on A100s\n");
    for (int i = 0; i < n; i++) r->rules += write_group(f, &g[i]);
    return hp_tuning_end(f, t, "NCCL", r, err);
}
