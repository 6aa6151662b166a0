/* experiments_show.c - the report as tables: every row, the totals, rankings, and the effect of leaving out
 * data. */
#include "cli/experiments/experiments.h"

#include <math.h>
#include <string.h>

static const char *published(const experiment_row *r, char out[48]) {
    if (!r->has_figure)
        snprintf(out, 48, "-");
    else if (r->word)
        snprintf(out, 48, "%.40s", r->word);
    else if (isinf(r->high))
        snprintf(out, 48, "%.6g..", r->low);
    else if (r->high > r->low)
        snprintf(out, 48, "%.4g..%.4g", r->low, r->high);
    else
        snprintf(out, 48, r->kind == EXPERIMENT_EXACT ? "%.12g" : "%.6g", r->low);
    return out;
}

static const char *simulated(const experiment_row *r, const experiment_result *x, char out[32]) {
    if (x->word)
        snprintf(out, 32, "%.30s", x->word);
    else if (isnan(x->value))
        snprintf(out, 32, "-");
    else
        snprintf(out, 32, r->kind == EXPERIMENT_EXACT ? "%.12g" : "%.4g", x->value);
    return out;
}

static const char *percent(double part, bool signs, char out[16]) {
    if (isnan(part))
        snprintf(out, 16, "-");
    else
        snprintf(out, 16, signs ? "%+.1f%%" : "%.1f%%", 100 * part);
    return out;
}

/* "MISS" and "wrong side", shown beside the published value. */
static const char *remark(const experiment_row *r, const experiment_result *x) {
    if (x->verdict == EXPERIMENT_OPEN) return "";
    if (x->sign == EXPERIMENT_MISS) return " WRONG SIGN";
    return x->verdict == EXPERIMENT_HIT ? "" : r->kind == EXPERIMENT_EXACT ? " NOT HELD" : " MISS";
}

/* Width of the column of names. */
static int width_of(const experiment_file *f) {
    int width = 16;
    for (int i = 0; i < f->n; i++) {
        const int n = (int)strlen(f->row[i].name);
        width = n > width ? n : width;
    }
    return width;
}

static void print_row(const experiment_file *f, const experiment_row *r, const experiment_result *x,
                      const experiment_result *roofline) {
    char paper[48], value[32], error[16], other[16], plain[512];
    printf("  %-*s %-15s %12s %12s %8s %8s  %s%s%s", width_of(f), r->name,
           r->has_figure ? experiment_measure_names[r->measure] : "-", published(r, paper),
           simulated(r, x, value), percent(x->error, true, error), percent(roofline->error, true, other),
           experiment_kind_names[r->kind], r->used && f->in_table ? ", used" : "", remark(r, x));
    if (r->runs && r->options.costs.as) printf(" (as %s)", r->options.costs.as);
    if (r->missing) printf(" not simulated: %s", cli_plain(r->missing, plain, sizeof plain));
    if (!r->missing && *x->why) printf(" %s", cli_plain(x->why, plain, sizeof plain));
    if (*r->note) printf("; %s", cli_plain(r->note, plain, sizeof plain));
    printf("\n");
}

/* A run without published figures is shown only if it failed. */
static bool shown(const experiment_row *r, const experiment_result *x) {
    return r->has_figure || r->missing || *x->why;
}

static void print_file(const experiment_report *r, int k) {
    char plain[1024];
    const experiment_file *f = &r->book->file[k];
    printf("%s: %s\n", f->name, cli_plain(f->source, plain, sizeof plain));
    printf("  %s\n", cli_plain(f->what, plain, sizeof plain));
    printf("  %-*s %-15s %12s %12s %8s %8s\n", width_of(f), "row", "measure", "published", "simulated",
           "error", "roofline");
    for (int i = 0; i < f->n; i++) {
        const experiment_result x = experiment_judge(f, i, r->run[k]);
        const experiment_result y = experiment_judge(f, i, r->roofline[k]);
        if (shown(&f->row[i], &x)) print_row(f, &f->row[i], &x, &y);
    }
    printf("\n");
}

static void print_count(const char *what, const experiment_count *c) {
    printf("%s %d of %d", what, c->hit, c->known);
    if (c->rows > c->known) printf(" (%d more not simulated)", c->rows - c->known);
    printf("\n");
}

static void print_points(const char *what, const experiment_count *c, const experiment_count *roofline) {
    char all[16], unused[16], other[16];
    print_count(what, c);
    printf("  mean error %s; %d used for calibration, the other %d %s",
           percent(experiment_mean(c->error, c->known), false, all), c->used, c->unused,
           percent(experiment_mean(c->error_unused, c->unused), false, unused));
    if (roofline)
        printf("; roofline %s, %d of %d",
               percent(experiment_mean(roofline->error, roofline->known), false, other), roofline->hit,
               roofline->known);
    printf("\n");
}

static void print_tally(const experiment_tally *t, const experiment_tally *roofline) {
    print_count("exact: held", &t->of[EXPERIMENT_EXACT]);
    print_points("points: within 15 %", &t->of[EXPERIMENT_POINT], &roofline->of[EXPERIMENT_POINT]);
    print_points("points of memory: within 15 %", &t->of[EXPERIMENT_MEMORY], NULL);
    print_count("bands: hit", &t->of[EXPERIMENT_BAND]);
    print_count("signs and outcomes: right", &t->of[EXPERIMENT_SIGN]);
    printf("ratios on the published side of 1: %d of %d (roofline %d of %d)\n", t->right, t->signs,
           roofline->right, roofline->signs);
}

static void print_group(const experiment_group *g) {
    char error[16], tau[16] = "-", inside[32] = "-", half[16];
    if (!isnan(g->tau)) snprintf(tau, sizeof tau, "%.2f", g->tau);
    if (g->coverage.known)
        snprintf(inside, sizeof inside, "%d of %d", g->coverage.covered, g->coverage.known);
    printf("%-24s %6d %5d %12d %11s %6s %17s %11s\n", g->name, g->points, g->used, g->hit,
           percent(experiment_mean(g->error, g->points), false, error), tau, inside,
           percent(g->coverage.half_width, false, half));
}

static void print_groups(const experiment_report *r) {
    if (!r->n_group) return;
    printf("\n%-24s %6s %5s %12s %11s %6s %17s %11s\n", "points of time by file", "points", "used",
           "within 15 %", "mean error", "tau", "in their interval", "half-width");
    for (int i = 0; i < r->n_group; i++) print_group(&r->group[i]);
    if (r->n_group > 1) print_group(&r->of_time);
}

/* Prints how many numbers each framework has, beside the points by which it is judged. */
static void print_profiles(const experiment_report *r) {
    char error[16];
    if (r->n_profile)
        printf("\n%-26s %14s %8s %14s %12s\n", "framework", "numbers in it", "points", "within 15 %",
               "mean error");
    for (int i = 0; i < r->n_profile; i++) {
        const experiment_profile *p = &r->profile[i];
        printf("%-26s %14d %8d %14d %12s\n", p->framework->name, hp_framework_numbers(p->framework),
               p->points, p->hit, percent(experiment_mean(p->error, p->points), false, error));
    }
}

static const char *named(const experiment_row *r) {
    return r ? r->name : "-";
}

static void print_ranking(const experiment_report *r) {
    int known = 0, right = 0, roofline = 0, data = 0, spatial = 0;
    if (r->n_ranking)
        printf("\nbest strategy  %-28s %-14s %-14s %s\n", "of", "published", "predicted", "roofline");
    for (int i = 0; i < r->n_ranking; i++) {
        const experiment_ranking *k = &r->ranking[i];
        char group[64];
        snprintf(group, sizeof group, "%.24s %.30s", k->file->name, k->group);
        printf("               %-28s %-14s %-14s %s\n", group, named(k->published), named(k->predicted),
               named(k->roofline));
        if (!k->predicted) continue;
        known++;
        right += k->predicted == k->published;
        roofline += k->roofline == k->published;
        data += k->data;
        spatial += k->spatial;
    }
    if (r->n_ranking)
        printf(
            "published best ranked best: %d of %d; roofline %d, always data parallel %d, always spatial %d\n",
            right, known, roofline, data, spatial);
}

static void print_left_out(const experiment_report *r) {
    if (!r->left_out_by) return;
    printf("\nleft out: %-42.42s %6s %8s %8s %8s\n", r->left_out_by, "points", "with", "without", "roofline");
    for (int i = 0; i < r->n_left_out; i++) {
        const experiment_left_out *x = &r->left_out[i];
        char with[16], without[16], roofline[16], plain[128];
        printf("          %-42.42s %6d %8s %8s %8s%s\n", cli_plain(x->value, plain, sizeof plain), x->points,
               percent(x->with, false, with), percent(x->without, false, without),
               percent(x->roofline, false, roofline),
               x->n_without ? "" : "  (no row of a table rests on it)");
    }
}

void experiment_print(const experiment_report *r) {
    for (int k = 0; k < r->book->n; k++) print_file(r, k);
    print_tally(&r->tally, &r->tally_roofline);
    printf("rows of cost tables, and frameworks as one, that were taken from these figures: %d\n", r->cited);
    print_groups(r);
    print_profiles(r);
    print_ranking(r);
    print_left_out(r);
}

void experiment_print_list(const experiment_book *b) {
    char plain[1024];
    for (int k = 0; k < b->n; k++)
        printf("%-20s %3d rows  %s\n", b->file[k].name, b->file[k].n,
               cli_plain(b->file[k].source, plain, sizeof plain));
}
