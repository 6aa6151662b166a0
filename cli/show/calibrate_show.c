/* calibrate_show.c - shows the rows of a cost table as text and as JSON. */
#include "cli/show/calibrate_show.h"
#include "plan/base/units.h"

#include <string.h>

static void print_compute(const hp_cost_table *t) {
    char low[32], high[32];
    bool title = false;
    for (int i = 0; i < t->n; i++) {
        const hp_row *r = &t->row[i];
        if (r->kind != HP_ROW_COMPUTE || r->source != HP_SOURCE_MEASURED) continue;
        if (!title)
            printf("%-54s %6s %12s %12s %9s %9s %7s\n", "# compute", "points", "from", "to", "time", "time",
                   "+-");
        title = true;
        printf("%-54s %6d %12.4g %12.4g %9s %9s %6.1f%%\n", r->key, r->n, r->x[0], r->x[r->n - 1],
               hp_format_seconds(r->y[0], low), hp_format_seconds(r->y[r->n - 1], high), 100 * r->residual);
    }
}

/* Number of ranks from "r4 n4": ranks, and ranks per node. */
static int ranks_of(const hp_row *r) {
    int ranks = 2;
    return r->kind == HP_ROW_ALLREDUCE && sscanf(r->key, "r%d", &ranks) == 1 ? ranks : 2;
}

/* The back end: the last word of "r4 n4 nccl", or of "nccl". */
static const char *wire_of(const hp_row *r) {
    for (const char *const *b = hp_backend_names; *b; b++) {
        const size_t n = strlen(*b), key = strlen(r->key);
        if (key >= n && strcmp(r->key + key - n, *b) == 0) return *b;
    }
    return "";
}

/* Bytes on the bus per byte of the buffer, as nccl-tests defines it: 2(n-1)/n of an all-reduce, 1 of a
 * message. */
static double bus_factor(const hp_row *r) {
    const double n = ranks_of(r);
    return r->kind == HP_ROW_ALLREDUCE ? 2 * (n - 1) / n : 1;
}

static void print_comm(const hp_row *r) {
    const bool sum = r->kind == HP_ROW_ALLREDUCE;
    printf("\n# %s, %d ranks, in place%s%s\n", sum ? "all_reduce" : "sendrecv", ranks_of(r),
           *wire_of(r) ? ", " : "", wire_of(r));
    printf("# %10s %12s %8s %8s %6s %10s %8s %8s %7s\n", "size", "count", "type", "redop", "root", "time",
           "algbw", "busbw", "#wrong");
    printf("# %10s %12s %8s %8s %6s %10s %8s %8s\n", "(B)", "(elements)", "", "", "", "(us)", "(GB/s)",
           "(GB/s)");
    double bus = 0;
    for (int k = 0; k < r->n; k++) {
        const double rate = r->y[k] > 0 ? 1e-9 * r->x[k] / r->y[k] : 0;
        bus += rate * bus_factor(r) / r->n;
        printf("%12.0f %12.0f %8s %8s %6s %10.2f %8.2f %8.2f %7s\n", r->x[k], r->x[k] / 4, "float",
               sum ? "sum" : "none", "-1", 1e6 * r->y[k], rate, rate * bus_factor(r), "N/A");
    }
    printf("# Avg bus bandwidth    : %g\n", bus);
}

void calibrate_print(const hp_cost_table *t) {
    print_compute(t);
    for (int i = 0; i < t->n; i++) {
        const hp_row *r = &t->row[i];
        if ((r->kind == HP_ROW_P2P || r->kind == HP_ROW_ALLREDUCE) && r->source == HP_SOURCE_MEASURED)
            print_comm(r);
    }
}

static json_t *row_json(const hp_row *r) {
    json_t *points = json_array();
    for (int k = 0; k < r->n; k++)
        json_array_append_new(points, json_pack("{s:f,s:f}", "size", r->x[k], "time_s", r->y[k]));
    return json_pack("{s:s,s:s,s:s,s:f,s:I,s:o}", "kind", hp_row_infos[r->kind].name, "class", r->class,
                     "key", r->key, "residual", r->residual, "samples", (json_int_t)r->samples, "points",
                     points);
}

json_t *calibrate_json(const hp_cost_table *t, const char *path, double elapsed_s, int runs) {
    json_t *rows = json_array();
    for (int i = 0; i < t->n; i++)
        if (t->row[i].source == HP_SOURCE_MEASURED) json_array_append_new(rows, row_json(&t->row[i]));
    return json_pack("{s:i,s:s,s:s,s:s,s:f,s:i,s:o}", "schema", 1, "file", path, "driver", t->driver,
                     "status", t->status, "elapsed_s", elapsed_s, "runs", runs, "rows", rows);
}
