/* explain.c - names of units, extent of stages, and a plan as one JSON object. */
#include "cli/explain.h"

#include "cli/cli.h"

#include <string.h>

int explain_stages(const hp_plan *plan) {
    return plan->strategy.n_cut ? plan->strategy.n_cut : plan->strategy.stages * plan->strategy.chunks;
}

explain_stage explain_stage_of(const hp_plan *plan, int stage) {
    const hp_graph *g = plan->graph;
    explain_stage s = {.stage = stage, .role = stage % plan->program->n_role};
    for (int v = 0; v < stage; v++) s.first_unit += plan->strategy.cut[v];
    s.last_unit = s.first_unit + plan->strategy.cut[stage] - 1;
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

/* Length of the longest common beginning of all names that ends before a dot; 0 = none. */
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

static json_t *units_json(const hp_graph *g) {
    json_t *units = json_array();
    for (int u = 0; u < g->n_unit; u++) {
        char name[EXPLAIN_NAME];
        const hp_tensor *t = &g->tensor[g->layer[g->unit_first[u + 1] - 1].out];
        json_array_append_new(units, json_pack("{s:i, s:s, s:i, s:[i,i,i]}", "unit", u, "name",
                                               explain_unit_name(g, u, name), "layers",
                                               (int)(g->unit_first[u + 1] - g->unit_first[u]), "output",
                                               (int)t->h, (int)t->w, (int)t->c));
    }
    return units;
}

static json_t *stages_json(const hp_plan *plan) {
    json_t *stages = json_array();
    for (int v = 0; v < explain_stages(plan); v++) {
        const explain_stage s = explain_stage_of(plan, v);
        json_array_append_new(stages,
                              json_pack("{s:i, s:i, s:i, s:i, s:I, s:I}", "stage", s.stage, "role", s.role,
                                        "first_unit", s.first_unit, "last_unit", s.last_unit, "parameters",
                                        (json_int_t)s.params, "macs_per_image", (json_int_t)s.macs));
    }
    return stages;
}

static json_t *task_json(const hp_plan *plan, const hp_role *r, int task) {
    const hp_task *t = &r->task[task];
    const hp_task_info *info = &hp_task_infos[t->op];
    char label[200];
    json_t *deps = json_array();
    for (int i = r->dep_first[task]; i < r->dep_first[task + 1]; i++)
        json_array_append_new(deps, json_integer(r->dep[i]));
    return json_pack("{s:i, s:s, s:s, s:s, s:i, s:i, s:i, s:i, s:I, s:o}", "task", task, "op", info->name,
                     "phase", hp_phase_names[info->phase], "label",
                     hp_task_label(plan->program, plan->graph, r, task, label, sizeof label), "queue",
                     (int)t->queue, "layer", (int)t->layer, "micro", (int)t->micro, "flags", (int)t->flags,
                     "count", (json_int_t)t->count, "after", deps);
}

static json_t *role_json(const hp_plan *plan, int role, bool want_tasks) {
    const hp_role *r = &plan->program->role[role];
    json_t *o = json_pack("{s:i, s:i, s:i, s:i, s:I, s:I}", "role", role, "n_task", (int)r->n_task,
                          "n_buffer", (int)r->n_buffer, "n_bucket", (int)r->n_bucket, "memory_bytes",
                          (json_int_t)r->arena_bytes, "live_bytes", (json_int_t)r->live_bytes);
    if (!want_tasks) return o;
    json_t *tasks = json_array();
    for (int t = 0; t < r->n_task; t++) json_array_append_new(tasks, task_json(plan, r, t));
    json_object_set_new(o, "tasks", tasks);
    return o;
}

json_t *explain_json(const hp_plan *plan, int role) {
    const hp_program *p = plan->program;
    char strategy[HP_STRATEGY_TEXT];
    json_t *roles = json_array();
    for (int r = 0; r < p->n_role; r++)
        json_array_append_new(roles, role_json(plan, r, role < 0 || r == role));
    return json_pack("{s:i, s:s, s:s, s:[i,i], s:i, s:I, s:s, s:s, s:s, s:i, s:I, s:I, s:f, s:o, s:o, s:o}",
                     "schema", 1, "net", plan->net, "mode", p->mode == HP_MODE_TRAIN ? "train" : "infer",
                     "image", (int)plan->image_h, (int)plan->image_w, "classes", (int)plan->classes,
                     "parameters", (json_int_t)hp_graph_param_count(plan->graph), "strategy",
                     hp_strategy_text(&plan->strategy, strategy), "machine", plan->machine.name, "device",
                     plan->device, "ranks", hp_program_ranks(p), "batch", (json_int_t)plan->batch,
                     "micro_batch", (json_int_t)p->micro_batch, "step_s", plan->step_s, "units",
                     units_json(plan->graph), "stages", stages_json(plan), "roles", roles);
}
