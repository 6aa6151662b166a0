/* bench_rates.c - how well a cost table measured over links of one rate predicts links of another. For every
 * size of the second table's rows between nodes, prints the first table's time, divided by the measured one.
 *
 *   bench_rates MEASURED_THERE.cost MACHINE_HERE.json MEASURED_HERE.cost [SMALLEST BYTES] */
#include "costmodels/cost_rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct tally {
    double log_sum, worst;
    int n, within;
} tally;

static void count(tally *t, double ratio) {
    static const double TARGET = 0.15;
    t->log_sum += log(ratio);
    t->n++;
    t->within += fabs(ratio - 1) <= TARGET;
    if (fabs(log(ratio)) > fabs(t->worst)) t->worst = log(ratio);
}

static void print(const char *what, const tally *t) {
    if (t->n)
        printf("%-44s %4d sizes, %3d%% within 15%%, mean %.3f, worst %.3f\n", what, t->n,
               100 * t->within / t->n, exp(t->log_sum / t->n), exp(t->worst));
}

/* What table `t` says of a row's size. */
static double predicted(const hp_cost_table *t, const hp_machine *m, const hp_row *row, double bytes) {
    hp_collective_call c;
    if (row->kind == HP_ROW_P2P) return hp_cost_p2p(t, m, HP_WIRE_ANY, false, bytes).seconds;
    return hp_collective_of_key(row->key, &c) ? hp_cost_collective(t, m, &c, bytes).seconds : NAN;
}

static void compare(const hp_cost_table *t, const hp_machine *m, const hp_cost_table *here, double least) {
    tally all = {0}, messages = {0}, of[HP_COLLECTIVES] = {0};
    for (int i = 0; i < here->n; i++) {
        const hp_row *row = &here->row[i];
        const bool message = row->kind == HP_ROW_P2P && !row->key[0];
        if (strcmp(row->class, m->inter.name) != 0 || (!message && row->kind != HP_ROW_COLLECTIVE)) continue;
        tally line = {0};
        hp_collective_call c = {.what = HP_COLLECTIVE_ALLREDUCE};
        if (!message && !hp_collective_of_key(row->key, &c)) continue;
        for (int k = 0; k < row->n; k++) {
            const double ratio = predicted(t, m, row, row->x[k]) / row->y[k];
            if (row->x[k] < least) continue;
            count(&line, ratio), count(&all, ratio), count(message ? &messages : &of[c.what], ratio);
        }
        print(message ? "message" : row->key, &line);
    }
    printf("\n");
    print("messages", &messages);
    for (int c = 0; c < (int)HP_COLLECTIVES; c++) print(hp_collective_infos[c].name, &of[c]);
    print("all", &all);
}

int main(int argc, char **argv) {
    hp_arena *arena = hp_arena_new();
    hp_error err;
    hp_machine m;
    hp_cost_table *there, *here;
    if (argc < 4) return fprintf(stderr, "bench_rates THERE.cost MACHINE.json HERE.cost [BYTES]\n"), 2;
    hp_status s = hp_machine_load(argv[2], &m, &err);
    if (s == HP_OK) s = hp_cost_load(arena, argv[1], &m, &there, &err);
    if (s == HP_OK) s = hp_cost_load(arena, argv[3], &m, &here, &err);
    if (s == HP_OK)
        compare(there, &m, here, argc > 4 ? atof(argv[4]) : 4096);
    else
        fprintf(stderr, "%s\n", err.text);
    hp_arena_free(arena);
    return s == HP_OK ? 0 : 1;
}
