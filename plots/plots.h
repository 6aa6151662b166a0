/* plots.h - the plots: one function per kind draws on a canvas from runs or candidates. */
#ifndef HP_PLOTS_H
#define HP_PLOTS_H

#include "plan/collectives/collective.h"
#include "plots/canvas.h"
#include "traces/trace_bench.h"
#include "traces/ledger.h"
#include "traces/query.h"

/* The source of a plot: loaded from one file or several by hp_plot_load. */
typedef struct hp_plot_candidate {
    const char *strategy;
    int32_t rank, gpus;
    double step_s, step_low_s, step_high_s, images_per_s;
    double memory_bytes, batch;
} hp_plot_candidate;

/* A sweep's curve: a strategy as given, "dp=*", and the strategies it became. */
typedef struct hp_plot_curve {
    const char *name;
    int n;
    const char **strategy;
} hp_plot_curve;

/* A measurement by others: images/s on a number of devices. */
typedef struct hp_plot_point {
    double gpus, images_per_s;
} hp_plot_point;

/* A share of a rank's memory when it is fullest. */
typedef struct hp_plot_part {
    int rank, name; /* name: index */
    double bytes;
} hp_plot_part;

typedef struct hp_plot_source {
    const char *net;       /* "" if unknown */
    int32_t height, width; /* size of a sample: pixels, or tokens and 1; 0: unknown */
    int32_t batch;         /* of the plan; 0: unknown */
    const char *path;
    bool has_sim, has_exec;
    hp_trace sim, exec; /* newest of each kind, without evaluation */
    int n_candidate;
    hp_plot_candidate *candidate; /* sorted by rank: best first */
    int n_curve;                  /* 0: a single curve, the best candidate for every number of devices */
    hp_plot_curve *curve;
    int n_front;
    int32_t *front; /* ranks of candidates, as stored; none in files of earlier versions */
    int64_t n_planned, n_peak, n_memory[2];
    hp_trace_value *planned, *peak; /* the executed run's, otherwise the simulated one's */
    hp_trace_value *memory[2];      /* bytes over time: simulated, executed */
    struct {                        /* hp_plot_load leaves these to its caller */
        int n, n_name;
        hp_plot_part *at; /* of each rank in the order of names */
        const char *const *name;
        double capacity_bytes; /* of a rank; 0: unknown */
    } parts;
    int n_bench;
    hp_bench_series *bench; /* series of `hplan bench` */
    struct {                /* n: nonzero only for a text of points (plot_points.c), which has nothing else */
        int n;
        hp_plot_point *at;
        const char *from;
    } points;
} hp_plot_source;

/* Loads the parts of a source that a plan.db, run.db or bench.db has. Errors: HP_EDATA. */
typedef hp_status hp_plot_loader(hp_arena *arena, const char *path, hp_plot_source *s, hp_error *err);
hp_plot_loader hp_plot_load;
/* Also accepts a text of points. Errors: HP_EDATA. */
hp_plot_loader hp_plot_load_scaling;

/* Draws on an open canvas and calls hp_canvas_render. Errors: HP_EDATA (the sources hold no data of that
 * kind), those of hp_canvas_*. */
typedef hp_status hp_plot_draw(hp_arena *arena, const hp_plot_source *s, int n, hp_canvas *c, hp_error *err);
hp_plot_draw hp_plot_timeline, hp_plot_scaling, hp_plot_memory, hp_plot_error, hp_plot_precision,
    hp_plot_pareto, hp_plot_size;

/* Seconds by bytes of the whole data, sizes ascending, for one way to do a collective, such as "own.ring". */
typedef struct hp_plot_comm_line {
    const char *name;
    int n;
    const double *bytes, *seconds;
} hp_plot_comm_line;
/* The section of a line where it is the fastest. */
typedef struct hp_plot_comm_fastest {
    int line;
    hp_plot_comm_line piece;
} hp_plot_comm_fastest;
/* An operation on a number of ranks, and the ways to do it. */
typedef struct hp_plot_comm_panel {
    hp_collective what;
    const char *link; /* that it was measured on; NULL: not said */
    int ranks, nodes, n_line, n_fastest;
    hp_plot_comm_line *line;
    hp_plot_comm_fastest *fastest;
} hp_plot_comm_panel;
typedef struct hp_plot_comm_source {
    const char *path, *origin; /* the cost table's file; where and when it was measured */
    int n;
    hp_plot_comm_panel *panel;
} hp_plot_comm_source;
/* Draws as many panels as fit, those with several lines first. Errors: HP_EDATA (there are none). */
hp_status hp_plot_comm(const hp_plot_comm_source *s, hp_canvas *c, hp_error *err);

/* A result of a balancing method on a chain: tries so far; time so far, in steps of the best result; slowest
 * stage relative to the best result's. One step per improvement. */
typedef struct hp_plot_balance_step {
    double tries, spent, ratio;
} hp_plot_balance_step;
/* A balancing method: its steps on each chain; none where it was not tried. */
typedef struct hp_plot_balance_line {
    const char *name;
    const int *n_step;
    const hp_plot_balance_step *const *step;
} hp_plot_balance_line;
/* Draws results against tries and time, over n chains; at most 16 methods. */
hp_status hp_plot_balance(const hp_plot_balance_line *line, int n_line, int n, hp_canvas *c, hp_error *err);

/* The `error` plot of a history: predicted steps with their intervals against measured ones, as measured and
 * at equal machine speed. use: for each entry, whether it counts; `line`: a summary of the figures. Errors:
 * HP_EDATA (no run counts). */
hp_status hp_plot_history(const hp_ledger_entry *e, const bool *use, int n, const char *line, hp_canvas *c,
                          hp_error *err);

/* images/s of a run (NULL: none) if it ran the candidate's strategy; NaN: it did not. */
double hp_plot_measured_rate(hp_arena *arena, const hp_trace *exec, const hp_plot_candidate *c);
/* A curve's best candidate on a number of devices, and the measurement of one on as many; NaN: none. */
typedef struct hp_plot_best {
    const hp_plot_candidate *c;
    double measured;
} hp_plot_best;
/* For each number of devices, ascending, the curve's candidate (NULL: of all) with the most images/s. out:
 * room for all candidates. Returns how many. */
int hp_plot_best_by_gpus(hp_arena *arena, const hp_plot_source *s, const hp_plot_curve *curve,
                         hp_plot_best *out);

/* The candidates on the front of memory, images/s and device hours (base/front.h), as stored or else
 * computed. front: room for all. Returns their number. */
int hp_plot_front(hp_arena *arena, const hp_plot_source *s, const hp_plot_candidate **front);

/* The iteration of median length; the trace has at least one. */
const hp_trace_iter *hp_plot_typical_iter(hp_arena *arena, const hp_trace *t);

typedef struct hp_plot_kind {
    const char *name, *meaning;
    hp_plot_draw *draw; /* draws what `load` reads; both NULL: reads a cost table, hp_plot_comm */
    hp_plot_loader *load;
    int max_files;
    int width, height; /* pixels */
} hp_plot_kind;
extern const hp_plot_kind hp_plot_kinds[]; /* the last has a NULL name */
const hp_plot_kind *hp_plot_find(const char *name);

/* The title of one plan: "resnet50 256x256, batch 16, fp32: dp=2,stages=2, 4 ranks on local (cpu)". */
const char *hp_plot_caption(hp_arena *arena, const hp_plot_source *s);
/* The title of many: "throughput: resnet50 256x256, batch 16, fp32 on local (cpu)". */
const char *hp_plot_heading(hp_arena *arena, const hp_plot_source *s, const char *what);

/* Colours of the phases, by hp_phase: part of a gnuplot string ("'#...' '#...'") that all scripts share. */
extern const char hp_plot_phases[];

#endif
