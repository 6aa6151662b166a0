/* bench_balance.c - quality and speed of methods that balance a pipeline over unequal devices: all methods on
 * the same chains, compared with the exact answer. */
#include "cli/bench/bench_commands.h"

#include "cli/bench/balance_cases.h"
#include "cli/bench/bench_list.h"
#include "cli/show/frame.h"
#include "base/clock.h"
#include "base/units.h"
#include "plots/plots.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct options {
    const char *net, *places, *speeds, *method, *tries, *seeds, *alpha, *output;
    bool json, rows;
} options;

static const frame_option OPTIONS[] = {
    {"net", 0, "LIST", offsetof(options, net), 0,
     "networks, and chain:N of equal convolutions (resnet50,vgg16,chain:18)"},
    {"places", 0, "LIST", offsetof(options, places), 0, "numbers of devices, 2 to 64 (4,8,16,32)"},
    {"speeds", 0, "LIST", offsetof(options, speeds), 0, "of two or three classes of devices (2,3)"},
    {"method", 0, "LIST", offsetof(options, method), 0, "of the ways (all)"},
    {"tries", 0, "N", offsetof(options, tries), 0,
     "the most configurations that a way tries (2000; exhaustive: 2000000)"},
    {"seeds", 0, "N", offsetof(options, seeds), 0, "runs of the random ones, the median counts (5)"},
    {"alpha", 0, "N", offsetof(options, alpha), 0, "Shisha stops after so many tries without gain (10)"},
    {"rows", 0, NULL, offsetof(options, rows), 0, "a row for each chain as well"},
    {"output", 'o', "FILE", offsetof(options, output), 0,
     "a picture: what was found against tries and time, .svg, .png or .pdf"},
    {"json", 'j', NULL, offsetof(options, json), 0, "one JSON object"},
    {0}};

enum { MOST_CASES = 256, MOST_METHODS = 16, MOST_SEEDS = 101, EXHAUSTIVE_TRIES = 2000000 };

/* One method on one chain: medians over the seeds. */
typedef struct outcome {
    bool done;    /* exhaustive: only for small spaces */
    double ratio; /* its result relative to the optimum */
    double tries, spent_s, gained_s,
        search_s;       /* configurations; seconds in them, a micro-batch each; up to the last gain; on this
                         * processor */
    hp_balance_run run; /* run with the first seed */
} outcome;

typedef struct contest {
    hp_arena *arena;
    balance_case *list;
    double *best_s; /* exact */
    int n, n_method, seeds, alpha;
    int64_t tries;
    const hp_balancer *method[MOST_METHODS];
    outcome *of; /* [case][method] */
} contest;

static int ascending(const void *x, const void *y) {
    const double *a = x, *b = y;
    return *a < *b ? -1 : *a > *b;
}

static double median(double *v, int n) {
    qsort(v, (size_t)n, sizeof *v, ascending);
    return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

static void run_method(const contest *c, int i, int m) {
    const hp_balancer *how = c->method[m];
    const bool all = strcmp(how->name, "exhaustive") == 0;
    const hp_chain *chain = &c->list[i].chain;
    outcome *o = &c->of[i * c->n_method + m];
    double ratio[MOST_SEEDS], tries[MOST_SEEDS], spent[MOST_SEEDS], gained[MOST_SEEDS], took[MOST_SEEDS];
    o->done = !all || hp_balance_space(chain) <= EXHAUSTIVE_TRIES;
    const int seeds = how->exact ? 1 : c->seeds;
    for (int s = 0; s < seeds && o->done; s++) {
        hp_balance_run r = hp_balance_start(c->arena, chain, (uint64_t)s + 1, all ? 0 : c->tries);
        r.alpha = c->alpha;
        const double since = hp_now_s();
        how->search(&r);
        took[s] = hp_now_s() - since;
        ratio[s] = r.best_s / c->best_s[i];
        tries[s] = (double)r.tries;
        spent[s] = r.spent_s;
        gained[s] = r.n_curve ? r.curve[r.n_curve - 1].spent_s : 0;
        if (s == 0) o->run = r;
    }
    if (!o->done) return;
    o->ratio = median(ratio, seeds);
    o->tries = median(tries, seeds);
    o->spent_s = median(spent, seeds);
    o->gained_s = median(gained, seeds);
    o->search_s = median(took, seeds);
}

static void run_all(contest *c) {
    c->of = HP_NEW(c->arena, outcome, (size_t)c->n * (size_t)c->n_method);
    c->best_s = HP_NEW(c->arena, double, c->n);
    for (int i = 0; i < c->n; i++) {
        hp_balance_run r = hp_balance_start(c->arena, &c->list[i].chain, 1, 0);
        hp_balancer_find("dp")->search(&r);
        c->best_s[i] = r.best_s;
        for (int m = 0; m < c->n_method; m++) run_method(c, i, m);
    }
}

/* --- the command line --- */

static hp_status parse_methods(hp_arena *arena, const options *o, contest *c, hp_error *err) {
    bench_list names;
    for (int m = 0; !o->method && m < hp_n_balancers; m++) c->method[c->n_method++] = &hp_balancers[m];
    if (!o->method) return HP_OK;
    HP_TRY(bench_list_parse(arena, o->method, "--method", false, &names, err));
    for (int m = 0; m < names.n && m < MOST_METHODS; m++) {
        const hp_balancer *how = hp_balancer_find(names.word[m]);
        const char *all = "";
        for (int k = 0; !how && k < hp_n_balancers; k++)
            all = hp_arena_printf(arena, "%s%s%s", all, k ? ", " : "", hp_balancers[k].name);
        if (!how) return hp_fail(err, HP_EUSAGE, "--method: '%.40s' is none of %s", names.word[m], all);
        c->method[c->n_method++] = how;
    }
    return HP_OK;
}

static hp_status add_cases(const bench_list *nets, const bench_list *places, int classes, contest *c,
                           hp_error *err) {
    for (int i = 0; i < nets->n; i++)
        for (int p = 0; p < places->n; p++) {
            int64_t n;
            HP_TRY(
                hp_parse_int(places->word[p], "--places", classes + classes % 2, HP_BALANCE_PLACES, &n, err));
            if (c->n == MOST_CASES) return hp_fail(err, HP_EUSAGE, "more than %d chains", MOST_CASES);
            HP_TRY(balance_case_make(c->arena, nets->word[i], (int)n, classes, &c->list[c->n++], err));
        }
    return HP_OK;
}

static hp_status parse_cases(const options *o, contest *c, hp_error *err) {
    bench_list nets, places, speeds;
    HP_TRY(
        bench_list_parse(c->arena, o->net ? o->net : "resnet50,vgg16,chain:18", "--net", false, &nets, err));
    HP_TRY(bench_list_parse(c->arena, o->places ? o->places : "4,8,16,32", "--places", true, &places, err));
    HP_TRY(bench_list_parse(c->arena, o->speeds ? o->speeds : "2,3", "--speeds", true, &speeds, err));
    c->list = HP_NEW(c->arena, balance_case, MOST_CASES);
    for (int k = 0; k < speeds.n; k++) {
        int64_t classes;
        HP_TRY(hp_parse_int(speeds.word[k], "--speeds", 2, HP_BALANCE_CLASSES, &classes, err));
        HP_TRY(add_cases(&nets, &places, (int)classes, c, err));
    }
    return HP_OK;
}

static hp_status parse(const options *o, contest *c, hp_error *err) {
    int64_t seeds = 5, alpha = 10;
    c->tries = 2000;
    if (o->tries) HP_TRY(hp_parse_int(o->tries, "--tries", 1, 100000000, &c->tries, err));
    if (o->seeds) HP_TRY(hp_parse_int(o->seeds, "--seeds", 1, MOST_SEEDS, &seeds, err));
    if (o->alpha) HP_TRY(hp_parse_int(o->alpha, "--alpha", 1, 1000000, &alpha, err));
    c->seeds = (int)seeds;
    c->alpha = (int)alpha;
    HP_TRY(parse_methods(c->arena, o, c, err));
    return parse_cases(o, c, err);
}

/* --- showing --- */

static void print_rows(const contest *c) {
    printf("%-9s %5s %6s %7s  %-12s %10s %9s %9s %12s\n", "chain", "units", "places", "classes", "way",
           "to best", "tries", "of space", "spent/best");
    for (int i = 0; i < c->n; i++)
        for (int m = 0; m < c->n_method; m++) {
            const hp_chain *chain = &c->list[i].chain;
            const outcome *o = &c->of[i * c->n_method + m];
            if (!o->done) continue;
            printf("%-9s %5d %6d %7d  %-12s %10.3f %9.0f %8.2g%% %12.0f\n", c->list[i].net, chain->n_unit,
                   hp_chain_places(chain), chain->n_class, c->method[m]->name, o->ratio, o->tries,
                   100 * o->tries / hp_balance_space(chain), o->spent_s / c->best_s[i]);
        }
}

/* A method over all chains on which it was tried. */
typedef struct summary {
    int n;
    double mean, worst, tries, spent, gained,
        search_s; /* medians except mean and worst; spent: in steps of the best */
} summary;

static summary sum_up(const contest *c, int m) {
    summary s = {0};
    double tries[MOST_CASES], spent[MOST_CASES], gained[MOST_CASES], took[MOST_CASES];
    for (int i = 0; i < c->n; i++) {
        const outcome *o = &c->of[i * c->n_method + m];
        if (!o->done) continue;
        s.mean += o->ratio;
        s.worst = fmax(s.worst, o->ratio);
        tries[s.n] = o->tries;
        took[s.n] = o->search_s;
        gained[s.n] = o->gained_s / c->best_s[i];
        spent[s.n++] = o->spent_s / c->best_s[i];
    }
    if (s.n == 0) return s;
    s.mean /= s.n;
    s.tries = median(tries, s.n);
    s.spent = median(spent, s.n);
    s.gained = median(gained, s.n);
    s.search_s = median(took, s.n);
    return s;
}

static void print(const contest *c, const options *o) {
    if (o->rows) print_rows(c);
    printf("%d chain%s: the slowest stage against the best there is, and what it cost to get there\n", c->n,
           c->n == 1 ? "" : "s");
    printf("%-12s %6s %7s %7s %7s %9s %9s %10s  %s\n", "way", "chains", "mean", "worst", "tries", "spent",
           "to gain", "computing", "");
    for (int m = 0; m < c->n_method; m++) {
        const summary s = sum_up(c, m);
        char time[32];
        if (s.n)
            printf("%-12s %6d %7.3f %7.3f %7.0f %9.0f %9.0f %10s  %s\n", c->method[m]->name, s.n, s.mean,
                   s.worst, s.tries, s.spent, s.gained, hp_format_seconds(s.search_s, time),
                   c->method[m]->what);
    }
    printf("medians over chains; spent: in all that was tried, a micro-batch each, in steps of the best; to "
           "gain: of it, "
           "until the last that was better\n");
}

static json_t *rows_json(const contest *c) {
    json_t *rows = json_array();
    for (int i = 0; i < c->n; i++)
        for (int m = 0; m < c->n_method; m++) {
            const hp_chain *chain = &c->list[i].chain;
            const outcome *o = &c->of[i * c->n_method + m];
            if (o->done)
                json_array_append_new(
                    rows, json_pack("{s:s, s:i, s:i, s:i, s:s, s:f, s:f, s:f, s:f, s:f, s:f}", "chain",
                                    c->list[i].net, "units", chain->n_unit, "places", hp_chain_places(chain),
                                    "classes", chain->n_class, "way", c->method[m]->name, "to_best", o->ratio,
                                    "tries", o->tries, "space", hp_balance_space(chain), "spent_in_best",
                                    o->spent_s / c->best_s[i], "gained_in_best", o->gained_s / c->best_s[i],
                                    "search_s", o->search_s));
        }
    return rows;
}

/* The curve of a run, and its end: what further tries did not improve. */
static const hp_plot_balance_step *steps_of(hp_arena *arena, const outcome *o, double best_s, int *n) {
    const hp_balance_run *r = &o->run;
    *n = o->done && r->n_curve > 0 ? r->n_curve + 1 : 0;
    hp_plot_balance_step *s = HP_NEW(arena, hp_plot_balance_step, r->n_curve + 1);
    for (int k = 0; k < r->n_curve; k++)
        s[k] = (hp_plot_balance_step){(double)r->curve[k].tries, r->curve[k].spent_s / best_s,
                                      r->curve[k].best_s / best_s};
    s[r->n_curve] = (hp_plot_balance_step){(double)r->tries, r->spent_s / best_s, r->best_s / best_s};
    return s;
}

static hp_plot_balance_line line_of(const contest *c, int m) {
    int *n = HP_NEW(c->arena, int, c->n);
    const hp_plot_balance_step **step = HP_NEW(c->arena, const hp_plot_balance_step *, c->n);
    for (int i = 0; i < c->n; i++)
        step[i] = steps_of(c->arena, &c->of[i * c->n_method + m], c->best_s[i], &n[i]);
    return (hp_plot_balance_line){c->method[m]->name, n, step};
}

static hp_status draw(const contest *c, const char *path, hp_error *err) {
    hp_canvas canvas = {0};
    hp_canvas_format format;
    hp_plot_balance_line *line = HP_NEW(c->arena, hp_plot_balance_line, c->n_method);
    for (int m = 0; m < c->n_method; m++) line[m] = line_of(c, m);
    HP_TRY(hp_canvas_format_of(path, &format, err));
    HP_TRY(hp_canvas_open(format, 1000, 500, &canvas, err));
    hp_status status = hp_plot_balance(line, c->n_method, c->n, &canvas, err);
    if (status == HP_OK) status = hp_canvas_save(&canvas, path, err);
    hp_canvas_close(&canvas);
    return status;
}

static hp_status bench(frame *f, hp_error *err) {
    const options *o = f->options;
    contest c = {.arena = f->arena};
    HP_TRY(parse(o, &c, err));
    run_all(&c);
    if (o->output) HP_TRY(draw(&c, o->output, err));
    if (o->json) return cli_print_json(json_pack("{s:i, s:o}", "schema", 1, "rows", rows_json(&c)), err);
    print(&c, o);
    return cli_finish_stdout(err);
}

int bench_balance(int argc, char **argv) {
    static const frame_command command = {.option = OPTIONS,
                                          .doc = "Compares ways of cutting a chain of layers into stages on "
                                                 "unlike devices: the exact dynamic programme, every "
                                                 "configuration, simulated annealing, hill climbing, a "
                                                 "random walk, Pipe-Search, and Shisha's heuristics, on "
                                                 "devices of two and three classes (A100, V100, T4 by the "
                                                 "shipped cost table).\vFor example: hplan bench balance "
                                                 "--net resnet50 --places 8,16 --rows -o balance.svg",
                                          .run = bench};
    options o = {0};
    return frame_run(&command, &o, argc, argv);
}
