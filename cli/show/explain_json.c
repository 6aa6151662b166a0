/* explain_json.c - a plan as one JSON object: units, stages with their layout, ranks with their tasks. */
#include "cli/show/explain.h"

#include "cli/cli.h"
#include "networks/graph/optimizer.h"
#include "networks/deploy/deploy.h"
#include "plan/program/print.h"
#include "plan/program/traffic.h"

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

static void add_proportions(json_t *o, const char *key, const hp_proportions *w) {
    json_t *of = json_array();
    for (int i = 0; i < w->n; i++) json_array_append_new(of, json_integer(w->of[i]));
    if (w->n)
        json_object_set_new(o, key, of);
    else
        json_decref(of);
}

/* Proportions only where parts are not equal. */
static json_t *layout_json(const hp_layout *l) {
    json_t *o = json_pack("{s:i, s:i, s:i, s:i}", "rows", (int)l->rows, "cols", (int)l->cols, "slices",
                          (int)l->slices, "channels", (int)l->channels);
    add_proportions(o, "share_of_slices", &l->by[HP_AXIS_N]);
    add_proportions(o, "share_of_rows", &l->by[HP_AXIS_H]);
    add_proportions(o, "share_of_cols", &l->by[HP_AXIS_W]);
    return o;
}

/* The roles of a stage's parts, in order. */
static json_t *ranks_json(const hp_plan *plan, const explain_stage *s, int flip) {
    json_t *ranks = json_array();
    for (int part = 0; part < s->parts; part++) {
        const int role = explain_role_of(plan, s->stage, part, flip);
        if (role >= 0) json_array_append_new(ranks, json_integer(role));
    }
    return ranks;
}

static json_t *stages_json(const hp_plan *plan) {
    json_t *stages = json_array();
    for (int v = 0; v < explain_stages(plan); v++) {
        const explain_stage s = explain_stage_of(plan, v);
        json_t *o = json_pack("{s:i, s:i, s:i, s:i, s:I, s:I, s:o, s:o, s:o}", "stage", s.stage, "role",
                              s.role, "first_unit", s.first_unit, "last_unit", s.last_unit, "parameters",
                              (json_int_t)s.params, "macs_per_image", (json_int_t)s.macs, "layout",
                              layout_json(&s.layout), "ranks", ranks_json(plan, &s, 0), "mirrored_ranks",
                              ranks_json(plan, &s, 1));
        if (s.strip_unit >= 0) {
            json_object_set_new(o, "strips", json_integer(plan->strategy.strips.n));
            json_object_set_new(o, "last_strip_unit", json_integer(s.strip_unit));
        }
        json_array_append_new(stages, o);
    }
    return stages;
}

/* Elements; of batch norm's statistics pixels; of what stands for compute nanoseconds. */
static int64_t count_of(const hp_task *t) {
    switch (hp_task_family_of(t)) {
    case HP_FAMILY_FORWARD:
        return t->forward.pixels;
    case HP_FAMILY_BACKWARD:
        return t->backward.pixels;
    case HP_FAMILY_DUMMY:
        return t->dummy.ns;
    default:
        return hp_task_range(t).count;
    }
}

static json_t *task_json(const hp_plan *plan, const hp_role *r, int task) {
    const hp_task *t = &r->task[task];
    const hp_task_info *info = &hp_task_infos[t->op];
    char label[200];
    json_t *deps = json_array();
    for (int i = r->dep_first[task]; i < r->dep_first[task + 1]; i++)
        json_array_append_new(deps, json_integer(r->dep[i]));
    json_t *o = json_pack("{s:i, s:s, s:s, s:s, s:i, s:i, s:i, s:i, s:I, s:o}", "task", task, "op",
                          info->name, "phase", hp_phase_names[info->phase], "label",
                          hp_task_label(plan->program, plan->graph, r, task, label, sizeof label), "queue",
                          (int)t->queue, "layer", (int)t->layer, "micro", (int)t->micro, "flags",
                          (int)t->flags, "count", (json_int_t)count_of(t), "after", deps);
    if (info->queue == HP_QUEUE_COLL)
        json_object_set_new(o, "algorithm", json_string(hp_algorithms[t->algorithm]->name));
    return o;
}

static json_t *slots_json(const hp_role *r) {
    json_t *slots = json_array();
    for (int i = 0; i < r->n_slot; i++)
        json_array_append_new(slots, json_pack("{s:i, s:i, s:b}", "stage", (int)r->slot[i].stage, "part",
                                               (int)r->slot[i].part, "mirrored", (int)r->slot[i].flip));
    return slots;
}

static json_t *role_json(const hp_plan *plan, int role, bool want_tasks) {
    const hp_role *r = &plan->program->role[role];
    char place[256];
    json_t *o = json_pack("{s:i, s:i, s:i, s:i, s:I, s:I, s:s, s:o}", "role", role, "n_task", (int)r->n_task,
                          "n_buffer", (int)r->n_buffer, "n_bucket", (int)r->n_bucket, "memory_bytes",
                          (json_int_t)r->arena_bytes, "live_bytes", (json_int_t)r->live_bytes, "place",
                          explain_place(plan, role, place, sizeof place), "slots", slots_json(r));
    if (!want_tasks) return o;
    json_t *tasks = json_array();
    for (int t = 0; t < r->n_task; t++) json_array_append_new(tasks, task_json(plan, r, t));
    json_object_set_new(o, "tasks", tasks);
    return o;
}

static json_t *collectives_json(const hp_program *p) {
    hp_arena *arena = hp_arena_new();
    json_t *all = json_array(), *ways = NULL;
    explain_way *w;
    const int n = explain_ways(arena, p, &w);
    for (int i = 0; i < n; i++) {
        if (!explain_goes_on(w, i)) {
            ways = json_array();
            json_array_append_new(all, json_pack("{s:s, s:i, s:o}", "op", hp_collective_infos[w[i].what].name,
                                                 "ranks", w[i].ranks, "ways", ways));
        }
        json_array_append_new(ways,
                              json_pack("{s:s, s:s, s:I, s:I}", "backend", hp_backend_names[w[i].backend],
                                        "algorithm", hp_algorithms[w[i].algorithm]->name, "least_bytes",
                                        (json_int_t)w[i].least, "most_bytes", (json_int_t)w[i].most));
    }
    hp_arena_free(arena);
    return all;
}

static json_t *traffic_json(const hp_program *p) {
    hp_sent sent[HP_TRAFFICS];
    json_t *kinds = json_array();
    hp_program_sends(p, sent);
    for (int k = 0; k < HP_TRAFFICS; k++)
        if (sent[k].number)
            json_array_append_new(kinds,
                                  json_pack("{s:s, s:f, s:I}", "kind", hp_traffic_names[k], "sent_bytes",
                                            sent[k].bytes, "number", (json_int_t)sent[k].number));
    return kinds;
}

json_t *explain_json(const hp_plan *plan, int role) {
    const hp_program *p = plan->program;
    char strategy[HP_STRATEGY_TEXT];
    json_t *roles = json_array();
    for (int r = 0; r < p->n_role; r++)
        json_array_append_new(roles, role_json(plan, r, role < 0 || r == role));
    return json_pack(
        "{s:i, s:s, s:s, s:s, s:b, s:s, s:[i,i], s:i, s:I, s:s, s:s, s:s, s:i, s:I, s:I, s:f, s:o, s:o, s:o, "
        "s:o, s:o}",
        "schema", 1, "net", plan->net, "mode", p->mode == HP_MODE_TRAIN ? "train" : "infer", "optimizer",
        hp_optimizer_infos[plan->optimizer].name, "clipped", plan->clips, "prec",
        hp_prec_names[plan->strategy.prec], "image", (int)plan->image_h, (int)plan->image_w, "classes",
        (int)plan->classes, "parameters", (json_int_t)hp_graph_param_count(plan->graph), "strategy",
        hp_strategy_text(&plan->strategy, strategy), "machine", plan->machine.name, "device",
        plan->device->name, "ranks", hp_program_ranks(p), "batch", (json_int_t)plan->batch, "micro_batch",
        (json_int_t)p->micro_batch, "step_s", plan->step_s, "units", units_json(plan->graph), "stages",
        stages_json(plan), "roles", roles, "collectives", collectives_json(p), "traffic", traffic_json(p));
}
