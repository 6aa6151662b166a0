/* report_basis.c - what the prediction rests on: shares of its tasks' time that were measured, published, of
 * data sheets or guessed, and the kinds of tasks behind the weaker ones. */
#include "cli/report/report_data.h"

#include "cli/show/show_costs.h"

enum { SOURCES = HP_SOURCE_GUESS + 1 };

/* Seconds of all tasks of all roles, by source. */
static double sum_sources(const report *r, double seconds[SOURCES]) {
    const hp_program *p = r->plan.program;
    double all = 0;
    for (int k = 0; k < SOURCES; k++) seconds[k] = 0;
    for (int role = 0; role < p->n_role; role++)
        for (int t = 0; t < p->role[role].n_task; t++) {
            const hp_cost *c = &r->costs->cost[role][t];
            seconds[c->source] += c->seconds;
            all += c->seconds;
        }
    return all;
}

json_t *report_basis(const report *r) {
    double seconds[SOURCES];
    char costs[COSTS_TEXT];
    const double all = sum_sources(r, seconds);
    json_t *shares = json_array();
    for (int k = 0; k < SOURCES; k++)
        json_array_append_new(shares, json_pack("{s:s, s:f}", "source", hp_source_names[k], "share",
                                                all > 0 ? seconds[k] / all : 0));
    return json_pack("{s:o, s:o, s:o, s:s, s:s}", "shares", shares, "unmeasured",
                     costs_unmeasured_json(&r->figures.exposure), "costs",
                     report_text(r, costs_text(r->setup.table, costs)), "command",
                     report_command(r, "explain", r->path), "to_measure",
                     report_on_subject(r, "calibrate",
                                       hp_arena_printf(r->arena, "--batch %lld", (long long)r->plan.batch)));
}
