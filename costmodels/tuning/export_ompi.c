/* export_ompi.c - writes rules for Open MPI's coll/tuned in the format of its reader (4.1). First the number
 * of collectives; for each its id and number of communicator sizes; for each its ranks and number of message
 * sizes; for each the bytes of the whole data, the algorithm's id, the fan-out and the segment size. A rule
 * applies from its ranks and bytes upwards; algorithm 0 is Open MPI's own decision. */
#include "costmodels/tuning/tuning_export.h"

#include <math.h>
#include <stdint.h>

/* Its coll_base_colltype, and the ids of `ompi_info --param coll tuned --level 9`. */
static const struct {
    int id, algorithm[HP_ALGORITHMS];
} ompi[HP_COLLECTIVES] = {
    [HP_COLLECTIVE_ALLREDUCE] =
        {2, {[HP_ALGORITHM_DOUBLING] = 3, [HP_ALGORITHM_RING] = 4, [HP_ALGORITHM_RABENSEIFNER] = 6}},
    [HP_COLLECTIVE_REDUCE_SCATTER] = {12, {[HP_ALGORITHM_RABENSEIFNER] = 2, [HP_ALGORITHM_RING] = 3}},
    [HP_COLLECTIVE_ALL_GATHER] =
        {0, {[HP_ALGORITHM_BRUCK] = 2, [HP_ALGORITHM_DOUBLING] = 3, [HP_ALGORITHM_RING] = 4}},
    [HP_COLLECTIVE_ALL_TO_ALL] = {3, {[HP_ALGORITHM_PAIRWISE] = 2, [HP_ALGORITHM_BRUCK] = 3}},
    [HP_COLLECTIVE_BROADCAST] = {7, {[HP_ALGORITHM_BINOMIAL] = 6}},
    [HP_COLLECTIVE_REDUCE] = {11, {[HP_ALGORITHM_BINOMIAL] = 5, [HP_ALGORITHM_RABENSEIFNER] = 7}},
    [HP_COLLECTIVE_GATHER] = {9, {[HP_ALGORITHM_BINOMIAL] = 2}},
    [HP_COLLECTIVE_SCATTER] = {15, {[HP_ALGORITHM_BINOMIAL] = 2}},
    [HP_COLLECTIVE_BARRIER] = {6, {[HP_ALGORITHM_DOUBLING] = 3, [HP_ALGORITHM_BRUCK] = 4}},
};

static bool ompi_has(hp_collective what, hp_algorithm a) {
    return a == HP_ALGORITHM_LIBRARY || ompi[what].algorithm[a] > 0;
}

/* Its rules ignore the placement of ranks: among placements of equal size, keeps the one with the most ranks
 * per node. */
static int one_placement(hp_tuned_group *g, int n, hp_tuning_report *r) {
    int kept = 0;
    char key[HP_COLLECTIVE_KEY];
    for (int i = 0; i < n; i++) {
        const bool again = i + 1 < n && g[i + 1].what == g[i].what && g[i + 1].ranks == g[i].ranks;
        const hp_collective_call c = {.what = g[i].what, .ranks = g[i].ranks, .per_node = g[i].per_node};
        if (again) hp_tuning_leave_out(r, hp_collective_key(&c, key));
        if (!again) g[kept++] = g[i];
    }
    return kept;
}

static int count_like(const hp_tuned_group *g, int n, int first) {
    int i = first;
    while (i < n && g[i].what == g[first].what) i++;
    return i - first;
}

/* Writes a rule that leaves other communicator sizes to Open MPI. */
static void write_own_decision(FILE *f, int ranks) {
    fprintf(f, "%d # ranks or more\n1 # message sizes\n0 0 0 0 # its own decision\n", ranks);
}

static int write_sizes(FILE *f, const hp_tuned_group *g) {
    fprintf(f, "%d # ranks\n%d # message sizes\n", g->ranks, g->n);
    for (int i = 0; i < g->n; i++)
        fprintf(f, "%ju %d 0 0 # %s\n", (uintmax_t)ceil(g->tuned[i].bytes),
                ompi[g->what].algorithm[g->tuned[i].algorithm], hp_algorithms[g->tuned[i].algorithm]->name);
    return g->n;
}

static int write_collective(FILE *f, const hp_tuned_group *g, int n) {
    int sizes = 1, written = 0;
    for (int i = 0; i < n; i++) sizes += i + 1 < n && g[i + 1].ranks == g[i].ranks + 1 ? 1 : 2;
    fprintf(f, "%d # %s\n%d # numbers of ranks\n", ompi[g->what].id, hp_collective_infos[g->what].name,
            sizes);
    write_own_decision(f, 0);
    for (int i = 0; i < n; i++) {
        written += write_sizes(f, &g[i]);
        if (i + 1 == n || g[i + 1].ranks != g[i].ranks + 1) write_own_decision(f, g[i].ranks + 1);
    }
    return written;
}

hp_status hp_export_ompi_rules(hp_arena *arena, const hp_cost_table *t, FILE *f, hp_tuning_report *r,
                               hp_error *err) {
    static const hp_tunable library = {HP_WIRE_MPI, ompi_has};
    hp_tuned_group *g;
    const int all = hp_tuned_groups(arena, t, &library, &g, r), n = one_placement(g, all, r);
    int collectives = 0;
    for (int i = 0; i < n; i += count_like(g, n, i)) collectives++;
    fprintf(f,
            "# mpirun --mca coll_tuned_use_dynamic_rules 1 --mca coll_tuned_dynamic_rules_filename FILE\n"
            "%d # collectives\n",
            collectives);
    for (int i = 0; i < n; i += count_like(g, n, i))
        r->rules += write_collective(f, &g[i], count_like(g, n, i));
    return hp_tuning_end(f, t, "Open MPI", r, err);
}
