/* show_json.c - the report as one JSON object. */
#include "cli/experiments/experiments.h"

#include <math.h>

static json_t *text(const char *s) {
    return s && *s ? json_string(s) : json_null();
}

static json_t *verdict(experiment_verdict v) {
    return v == EXPERIMENT_OPEN ? json_null() : json_boolean(v == EXPERIMENT_HIT);
}

/* The open end of a band is null. */
static json_t *row_json(const experiment_file *f, const experiment_row *r, const experiment_result *x,
                        const experiment_result *y) {
    const bool has = r->has_figure && !r->word;
    return json_pack(
        "{s:s, s:o, s:o, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "name",
        r->name, "measure", r->has_figure ? json_string(experiment_measure_names[r->measure]) : json_null(),
        "kind", text(experiment_kind_names[r->kind]), "used", (int)(r->used && f->in_table), "as",
        text(experiment_origin(f, r)->options.costs.as), "published_low",
        has ? cli_json_number(r->low) : json_null(), "published_high",
        has ? cli_json_number(r->high) : json_null(), "published_word", text(r->word), "simulated",
        cli_json_number(x->value), "simulated_word", text(x->word), "error", cli_json_number(x->error), "hit",
        verdict(x->verdict), "sign", verdict(x->sign), "roofline", cli_json_number(y->value),
        "roofline_error", cli_json_number(y->error), "why", text(x->why), "note", text(r->note));
}

static json_t *file_json(const experiment_report *r, int k) {
    const experiment_file *f = &r->book->file[k];
    json_t *rows = json_array();
    for (int i = 0; i < f->n; i++) {
        const experiment_result x = experiment_judge(f, i, r->run[k]);
        const experiment_result y = experiment_judge(f, i, r->roofline[k]);
        json_array_append_new(rows, row_json(f, &f->row[i], &x, &y));
    }
    return json_pack("{s:s, s:s, s:s, s:s, s:o, s:o, s:o}", "name", f->name, "source", f->source, "what",
                     f->what, "setup", f->setup, "section", text(f->section), "cited", text(f->cited), "rows",
                     rows);
}

static json_t *count_json(const experiment_count *c) {
    return json_pack("{s:i, s:i, s:i, s:i, s:o, s:o}", "rows", c->rows, "simulated", c->known, "hit", c->hit,
                     "used", c->used, "mean_error",
                     cli_json_number(experiment_mean(c->error, c->used + c->unused)), "mean_error_unused",
                     cli_json_number(experiment_mean(c->error_unused, c->unused)));
}

static json_t *tally_json(const experiment_tally *t) {
    json_t *o = json_object();
    for (int k = EXPERIMENT_EXACT; k < EXPERIMENT_CLASSES; k++)
        json_object_set_new(o, k == EXPERIMENT_MEMORY ? "memory" : experiment_kind_names[k],
                            count_json(&t->of[k]));
    json_object_set_new(o, "ratios", json_pack("{s:i, s:i}", "simulated", t->signs, "right", t->right));
    return o;
}

static json_t *profiles_json(const experiment_report *r) {
    json_t *list = json_array();
    for (int i = 0; i < r->n_profile; i++) {
        const experiment_profile *p = &r->profile[i];
        json_array_append_new(list, json_pack("{s:s, s:i, s:i, s:i, s:o}", "framework", p->framework->name,
                                              "numbers", hp_framework_numbers(p->framework), "points",
                                              p->points, "hit", p->hit, "mean_error",
                                              cli_json_number(experiment_mean(p->error, p->points))));
    }
    return list;
}

static json_t *group_json(const experiment_group *g) {
    return json_pack("{s:s, s:i, s:i, s:i, s:o, s:o, s:i, s:i, s:o}", "file", g->name, "points", g->points,
                     "used", g->used, "hit", g->hit, "mean_error",
                     cli_json_number(experiment_mean(g->error, g->points)), "tau", cli_json_number(g->tau),
                     "intervals", g->coverage.known, "covered", g->coverage.covered, "half_width",
                     cli_json_number(g->coverage.half_width));
}

static json_t *groups_json(const experiment_report *r) {
    json_t *list = json_array();
    for (int i = 0; i < r->n_group; i++) json_array_append_new(list, group_json(&r->group[i]));
    return list;
}

static json_t *name_of(const experiment_row *r) {
    return r ? json_string(r->name) : json_null();
}

static json_t *ranking_json(const experiment_report *r) {
    json_t *list = json_array();
    for (int i = 0; i < r->n_ranking; i++) {
        const experiment_ranking *k = &r->ranking[i];
        json_array_append_new(list, json_pack("{s:s, s:s, s:o, s:o, s:o, s:b, s:b}", "file", k->file->name,
                                              "of", k->group, "published", name_of(k->published), "predicted",
                                              name_of(k->predicted), "roofline", name_of(k->roofline), "data",
                                              (int)k->data, "spatial", (int)k->spatial));
    }
    return list;
}

static json_t *left_out_json(const experiment_report *r) {
    json_t *list = json_array();
    if (!r->left_out_by) {
        json_decref(list);
        return json_null();
    }
    for (int i = 0; i < r->n_left_out; i++) {
        const experiment_left_out *x = &r->left_out[i];
        json_array_append_new(
            list, json_pack("{s:s, s:i, s:i, s:o, s:o, s:o}", r->left_out_by, x->value, "points", x->points,
                            "cited", x->n_without, "with", cli_json_number(x->with), "without",
                            cli_json_number(x->without), "roofline", cli_json_number(x->roofline)));
    }
    return list;
}

json_t *experiment_json(const experiment_report *r) {
    json_t *files = json_array();
    for (int k = 0; k < r->book->n; k++) json_array_append_new(files, file_json(r, k));
    return json_pack("{s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "schema", 1, "files", files, "summary",
                     tally_json(&r->tally), "roofline", tally_json(&r->tally_roofline), "groups",
                     groups_json(r), "of_time", group_json(&r->of_time), "frameworks", profiles_json(r),
                     "ranking", ranking_json(r), "left_out", left_out_json(r));
}

json_t *experiment_json_list(const experiment_book *b) {
    json_t *files = json_array();
    for (int k = 0; k < b->n; k++)
        json_array_append_new(files, json_pack("{s:s, s:s, s:i}", "name", b->file[k].name, "source",
                                               b->file[k].source, "rows", b->file[k].n));
    return json_pack("{s:i, s:o}", "schema", 1, "files", files);
}
