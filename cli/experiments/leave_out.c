/* leave_out.c - points of one network, machine, image size or file, predicted without table rows that cite
 * figures of it. */
#include "cli/experiments/experiments.h"

#include <math.h>
#include <string.h>

struct experiment_dimension {
    const char *name;
    bool file;
    size_t at; /* else */
};
static const experiment_dimension dimensions[] = {
    {"net", false, offsetof(simulate_options, network.net)},
    {"machine", false, offsetof(simulate_options, machine.name)},
    {"image", false, offsetof(simulate_options, network.image)},
    {"group", true, 0}};

hp_status experiment_find_dimension(const char *name, const experiment_dimension **d, hp_error *err) {
    for (size_t i = 0; i < sizeof dimensions / sizeof dimensions[0]; i++) {
        *d = &dimensions[i];
        if (strcmp((*d)->name, name) == 0) return HP_OK;
    }
    return hp_fail(err, HP_EUSAGE, "--leave-out '%.40s' is not one of net, machine, image, group", name);
}

/* Selects all rows with the same value as this one. */
static experiment_filter alike(const experiment_dimension *d, const experiment_file *f,
                               const experiment_row *r) {
    if (d->file) return (experiment_filter){.file = f, .value = f->name};
    const simulate_options *o = &experiment_origin(f, r)->options;
    return (experiment_filter){.at = d->at,
                               .value = *(const char *const *)(const void *)((const char *)o + d->at)};
}

/* Mean error of a value's points, and their number. */
static double mean_error(const experiment_book *b, const experiment_filter *w, experiment_run *const *run,
                         int *points) {
    double sum = 0;
    *points = 0;
    for (int k = 0; k < b->n; k++) {
        const experiment_file *f = &b->file[k];
        for (int i = 0; i < f->n; i++) {
            if (!experiment_is_point_of_time(&f->row[i]) || !experiment_wants(w, f, &f->row[i])) continue;
            const double error = experiment_judge(f, i, run[k]).error;
            if (isnan(error)) continue;
            sum += fabs(error);
            ++*points;
        }
    }
    return experiment_mean(sum, *points);
}

/* Citations, in tables, of files with figures of this value on which tables rest. */
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

int experiment_leave_out(hp_arena *arena, const experiment_book *b, const experiment_dimension *d,
                         experiment_run *const *run, experiment_run *const *roofline,
                         experiment_left_out **list) {
    int n = 0, capacity = 0;
    *list = NULL;
    for (int k = 0; k < b->n; k++) {
        const experiment_file *f = &b->file[k];
        for (int i = 0; i < f->n; i++) {
            const experiment_filter w = alike(d, f, &f->row[i]);
            if (!experiment_is_point_of_time(&f->row[i]) || !w.value || seen(*list, n, w.value)) continue;
            HP_ROOM(arena, *list, n, capacity);
            leave_one(arena, b, &w, run, roofline, &(*list)[n++]);
        }
    }
    return n;
}
