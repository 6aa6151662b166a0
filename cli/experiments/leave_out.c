/* leave_out.c - points of one network, machine or image size, predicted without what was learnt from figures of it: rows of
 * the table that cite them are taken out. */
#include "cli/experiments/experiments.h"

#include <math.h>
#include <string.h>

static const struct {
    const char *name;
    size_t at;
} dimensions[] = {{"net", offsetof(simulate_options, net)},
                  {"machine", offsetof(simulate_options, machine)},
                  {"image", offsetof(simulate_options, image)}};

hp_status experiment_dimension(const char *name, size_t *at, hp_error *err) {
    for (size_t i = 0; i < sizeof dimensions / sizeof dimensions[0]; i++) {
        if (strcmp(dimensions[i].name, name) != 0) continue;
        *at = dimensions[i].at;
        return HP_OK;
    }
    return hp_fail(err, HP_EUSAGE, "--leave-out '%.40s' is not one of net, machine, image", name);
}

static bool is_point(const experiment_row *r) {
    return r->kind == EXPERIMENT_POINT && experiment_is_time(r->measure) && !r->missing;
}

/* The mean error of a value's points, and how many they are. */
static double mean_error(const experiment_book *b, const experiment_filter *w, experiment_run *const *run,
                         int *points) {
    double sum = 0;
    *points = 0;
    for (int k = 0; k < b->n; k++) {
        const experiment_file *f = &b->file[k];
        for (int i = 0; i < f->n; i++) {
            if (!is_point(&f->row[i]) || !experiment_wants(w, f, &f->row[i])) continue;
            const double error = experiment_judge(f, i, run[k]).error;
            if (isnan(error)) continue;
            sum += fabs(error);
            ++*points;
        }
    }
    return experiment_mean(sum, *points);
}

/* What the table calls the files that have figures of this value which it rests on. */
static int cited_by(hp_arena *arena, const experiment_book *b, const experiment_filter *w,
                    const char *const **list) {
    const char **cited = HP_NEW(arena, const char *, b->n);
    int n = 0;
    for (int k = 0; k < b->n; k++) {
        const experiment_file *f = &b->file[k];
        bool any = false;
        for (int i = 0; i < f->n && f->in_table; i++)
            any |= f->row[i].used && experiment_wants(w, f, &f->row[i]);
        if (any) cited[n++] = f->cited;
    }
    *list = cited;
    return n;
}

static bool seen(const experiment_left_out *list, int n, const char *value) {
    for (int i = 0; i < n; i++)
        if (strcmp(list[i].value, value) == 0) return true;
    return false;
}

static void leave_one(hp_arena *arena, const experiment_book *b, const experiment_filter *w,
                      experiment_run *const *run, experiment_run *const *roofline, experiment_left_out *x) {
    experiment_costs c = {.roofline = false};
    c.n_without = x->n_without = cited_by(arena, b, w, &c.without);
    x->value = w->value;
    x->with = mean_error(b, w, run, &x->points);
    x->roofline = mean_error(b, w, roofline, &(int){0});
    x->without =
        c.n_without ? mean_error(b, w, experiment_evaluate_all(arena, b, &c, w), &x->points) : x->with;
}

int experiment_leave_out(hp_arena *arena, const experiment_book *b, size_t at, experiment_run *const *run,
                         experiment_run *const *roofline, experiment_left_out **list) {
    int n = 0, capacity = 0;
    *list = NULL;
    for (int k = 0; k < b->n; k++) {
        const experiment_file *f = &b->file[k];
        for (int i = 0; i < f->n; i++) {
            const experiment_row *origin = experiment_origin(f, &f->row[i]);
            const char *value = *(const char *const *)(const void *)((const char *)&origin->options + at);
            if (!is_point(&f->row[i]) || !value || seen(*list, n, value)) continue;
            const experiment_filter w = {at, value};
            HP_ROOM(arena, *list, n, capacity);
            leave_one(arena, b, &w, run, roofline, &(*list)[n++]);
        }
    }
    return n;
}
