/* calibrate_show.c - shows the rows of a cost table as text and as JSON. */
#include "cli/show/calibrate_show.h"
#include "base/units.h"

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

/* The subject of a communication row. */
typedef struct comm {
    const char *name, *redop;
    char way[40]; /* "own.ring", "nccl", "" */
    int ranks;
    double bus_factor; /* bytes on the bus per byte of the data, as nccl-tests defines it; of a message 1 */
} comm;

static comm comm_of(const hp_row *r) {
    hp_collective_call c;
    comm x = {.name = "sendrecv", .redop = "none", .ranks = 2, .bus_factor = 1};
    if (r->kind == HP_ROW_P2P || !hp_collective_of_key(r->key, &c)) {
        snprintf(x.way, sizeof x.way, "%s", r->key);
        return x;
    }
    x.name = hp_collective_infos[c.what].name;
    x.redop = hp_collective_infos[c.what].adds ? "sum" : "none";
    x.ranks = c.ranks;
    x.bus_factor = hp_collective_bus_factor(c.what, c.ranks);
    if (c.by)
        snprintf(x.way, sizeof x.way, "%s%s%s", hp_backend_names[c.by - 1], c.algorithm ? "." : "",
                 c.algorithm ? hp_algorithms[c.algorithm]->name : "");
    return x;
}

static void print_comm(const hp_row *r) {
    const comm c = comm_of(r);
    printf("\n# %s, %d ranks%s%s\n", c.name, c.ranks, *c.way ? ", " : "", c.way);
    printf("# %10s %12s %8s %8s %6s %10s %8s %8s %7s\n", "size", "count", "type", "redop", "root", "time",
           "algbw", "busbw", "#wrong");
    printf("# %10s %12s %8s %8s %6s %10s %8s %8s\n", "(B)", "(elements)", "", "", "", "(us)", "(GB/s)",
           "(GB/s)");
    double bus = 0;
    for (int k = 0; k < r->n; k++) {
        const double rate = r->y[k] > 0 ? 1e-9 * r->x[k] / r->y[k] : 0;
        bus += rate * c.bus_factor / r->n;
        printf("%12.0f %12.0f %8s %8s %6s %10.2f %8.2f %8.2f %7s\n", r->x[k], r->x[k] / 4, "float", c.redop,
               "-1", 1e6 * r->y[k], rate, rate * c.bus_factor, "N/A");
    }
    printf("# Avg bus bandwidth    : %g\n", bus);
}

void calibrate_print(const hp_cost_table *t) {
    print_compute(t);
    for (int i = 0; i < t->n; i++) {
        const hp_row *r = &t->row[i];
        if ((r->kind == HP_ROW_P2P || r->kind == HP_ROW_COLLECTIVE) && r->source == HP_SOURCE_MEASURED)
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
