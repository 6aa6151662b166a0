/* explain.c - names of units, extent and layout of stages, and the roles' positions in them. */
#include "cli/show/explain.h"

#include "cli/cli.h"

#include "base/text.h"

#include <string.h>

int explain_stages(const hp_plan *plan) {
    return plan->strategy.cut.n ? plan->strategy.cut.n : plan->strategy.stages * plan->strategy.chunks;
}

int explain_role_of(const hp_plan *plan, int stage, int part, int flip) {
    const hp_program *p = plan->program;
    for (int r = 0; r < p->n_role; r++)
        for (int i = 0; i < p->role[r].n_slot; i++) {
            const hp_slot *s = &p->role[r].slot[i];
            if (s->stage == stage && s->part == part && s->flip == flip) return r;
        }
    return -1;
}

/* Strips end with the first stage, or with the unit that the strategy gives. */
static int last_strip_unit(const hp_strategy *s, const explain_stage *at) {
    if (s->strips.n == 1 || at->stage > 0) return -1;
    return s->strips.deep && s->strips.deep <= at->last_unit ? s->strips.deep - 1 : at->last_unit;
}

explain_stage explain_stage_of(const hp_plan *plan, int stage) {
    const hp_graph *g = plan->graph;
    const int role = explain_role_of(plan, stage, 0, 0);
    explain_stage s = {.stage = stage,
                       .role = role < 0 ? stage % plan->program->n_role : role,
                       .layout = hp_stage_layout(&plan->strategy, stage % plan->strategy.stages),
                       .parts = hp_stage_parts(&plan->strategy, stage % plan->strategy.stages)};
    for (int v = 0; v < stage; v++) s.first_unit += plan->strategy.cut.units[v];
    s.last_unit = s.first_unit + plan->strategy.cut.units[stage] - 1;
    s.strip_unit = last_strip_unit(&plan->strategy, &s);
    HP_ASSERT(s.first_unit >= 0 && s.last_unit < g->n_unit);
    for (int l = g->unit_first[s.first_unit]; l < g->unit_first[s.last_unit + 1]; l++) {
        s.macs += hp_layer_macs(g, l);
        for (int i = 0; i < g->layer[l].n_param; i++) {
            const hp_param *p = &g->param[g->layer[l].param[i]];
            if (hp_param_trained(p)) s.params += p->count;
        }
    }
    return s;
}

/* Length of the longest common prefix of all names that ends before a dot; 0 = none. */
static size_t common_prefix(const hp_graph *g, int first, int last) {
    const char *name = g->layer[first].name;
    size_t n = strlen(name);
    for (int l = first + 1; l <= last; l++) {
        size_t same = 0;
        while (same < n && name[same] == g->layer[l].name[same]) same++;
        n = same;
    }
    while (n > 0 && name[n] != '.') n--;
    return n;
}

const char *explain_unit_name(const hp_graph *g, int unit, char *out) {
    const int first = g->unit_first[unit], last = g->unit_first[unit + 1] - 1;
    const size_t common = first == last ? strlen(g->layer[first].name) : common_prefix(g, first, last);
    char raw[EXPLAIN_NAME];
    if (common)
        snprintf(raw, sizeof raw, "%.*s", (int)common, g->layer[first].name);
    else
        snprintf(raw, sizeof raw, "%.50s .. %.50s", g->layer[first].name, g->layer[last].name);
    return cli_plain(raw, out, EXPLAIN_NAME);
}

/* --- layouts --- */

/* Coordinates of a part in the layout. */
typedef struct place {
    int row, col, slice, channel;
} place;

/* part: of the layout; branches share one. */
static place part_of(const hp_layout *l, int part) {
    const int channel = part % l->channels, tile = part / l->channels, map = l->rows * l->cols;
    return (place){tile % map / l->cols, tile % l->cols, tile / map, channel};
}

/* The first ones of many. */
static void add_proportions(hp_text t, const char *of, const hp_proportions *w) {
    enum { SHOWN = 6 };
    if (w->n) hp_text_add(t, "%s ", of);
    for (int i = 0; i < w->n && i < SHOWN; i++) hp_text_add(t, "%s%d", i ? ":" : "", w->of[i]);
    if (w->n > SHOWN) hp_text_add(t, ":..");
}

const char *explain_layout(const hp_layout *l, char *out) {
    const hp_text t = {out, EXPLAIN_NAME};
    out[0] = 0;
    if (l->rows * l->cols > 1) hp_text_add(t, "%dx%d tiles", l->rows, l->cols);
    add_proportions(t, ", rows", &l->by[HP_AXIS_H]);
    add_proportions(t, ", columns", &l->by[HP_AXIS_W]);
    if (l->slices > 1) hp_text_add(t, "%s%d slices of the batch", out[0] ? " x " : "", l->slices);
    add_proportions(t, ",", &l->by[HP_AXIS_N]);
    if (l->channels > 1) hp_text_add(t, "%s%d channel slices", out[0] ? " x " : "", l->channels);
    return out;
}

/* Adds "tile 2 of 4 (1,0)" and so on, for every axis that is split. */
static void add_part(hp_text t, const hp_layout *l, int part, int branches) {
    const place at = part_of(l, part / branches);
    if (l->rows * l->cols > 1)
        hp_text_add(t, " tile %d of %d (%d,%d)", at.row * l->cols + at.col, l->rows * l->cols, at.row,
                    at.col);
    if (l->slices > 1) hp_text_add(t, " batch slice %d of %d", at.slice, l->slices);
    if (l->channels > 1) hp_text_add(t, " channel slice %d of %d", at.channel, l->channels);
    if (branches > 1) hp_text_add(t, " branch %d of %d", part % branches, branches);
}

const char *explain_place(const hp_plan *plan, int role, char *out, size_t n) {
    const hp_role *r = &plan->program->role[role];
    const hp_text t = {out, n};
    out[0] = 0;
    for (int i = 0; i < r->n_slot; i++) {
        const hp_slot *s = &r->slot[i];
        hp_text_add(t, "%s%sstage %d", i ? " + " : "", s->flip ? "mirrored " : "", s->stage);
        if (s->stage >= explain_stages(plan)) continue; /* a program that only exchanges messages */
        const hp_layout l = hp_stage_layout(&plan->strategy, s->stage % plan->strategy.stages);
        const int branches = plan->strategy.bp;
        if (s->part < hp_layout_parts(&l) * branches) add_part(t, &l, s->part, branches);
    }
    return out;
}
