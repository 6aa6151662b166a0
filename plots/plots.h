/* plots.h - the plots: one function per kind, each draws on a canvas from runs or candidates. */
#ifndef HP_PLOTS_H
#define HP_PLOTS_H

#include "plan/collectives/collective.h"
#include "plots/canvas.h"
#include "traces/trace_bench.h"
#include "traces/ledger.h"
#include "traces/query.h"

/* The source of a plot; loaded from one or several files by hp_plot_load. */
typedef struct hp_plot_candidate {
    const char *strategy;
    int32_t rank, gpus;
    double step_s, step_low_s, step_high_s, images_per_s;
    double memory_bytes;
} hp_plot_candidate;

/* Of a sweep: a strategy as it was given, "dp=*", and what it became. */
typedef struct hp_plot_curve {
    const char *name;
    int n;
    const char **strategy;
} hp_plot_curve;

/* A measurement of others: images/s of so many devices. */
typedef struct hp_plot_point {
    double gpus, images_per_s;
} hp_plot_point;

typedef struct hp_plot_source {
    const char *net;       /* "" if unknown */
    int32_t height, width; /* of a sample, pixels or tokens and 1; 0 if unknown */
    const char *path;
    bool has_sim, has_exec;
    hp_trace sim, exec; /* newest of each kind, without evaluation */
    int n_candidate;
    hp_plot_candidate *candidate; /* by rank: best first */
    int n_curve;                  /* 0: the best of every number of devices is the one there is */
    hp_plot_curve *curve;
    int n_front;
    int32_t *front; /* ranks of candidates, as stored; none in files of earlier versions */
    int64_t n_planned, n_peak, n_memory[2];
    hp_trace_value *planned, *peak; /* of the executed run, otherwise of the simulated one */
    hp_trace_value *memory[2];      /* bytes over time: simulated, executed */
    int n_bench;
    hp_bench_series *bench; /* series measured by `hplan bench` */
    int n_point;            /* of a text of points (plot_points.c), which is nothing else; else 0 */
    hp_plot_point *point;
    const char *points_from;
} hp_plot_source;

/* Loads from a plan.db, run.db or bench.db what it holds of a source. Errors: HP_EDATA. */
typedef hp_status hp_plot_loader(hp_arena *arena, const char *path, hp_plot_source *s, hp_error *err);
hp_plot_loader hp_plot_load;
/* Also a text of points. Errors: HP_EDATA. */
hp_plot_loader hp_plot_load_scaling;

/* Draws on an open canvas and calls hp_canvas_render. Errors: HP_EDATA when the sources hold no data of that
 * kind, and those of hp_canvas_*. */
typedef hp_status hp_plot_draw(hp_arena *arena, const hp_plot_source *s, int n, hp_canvas *c, hp_error *err);
hp_plot_draw hp_plot_timeline, hp_plot_scaling, hp_plot_memory, hp_plot_error, hp_plot_precision,
    hp_plot_pareto, hp_plot_size;

/* Seconds by bytes of the whole data, sizes increasing: of a way to do a collective, "own.ring". */
typedef struct hp_plot_comm_line {
    const char *name;
    int n;
    const double *bytes, *seconds;
} hp_plot_comm_line;
/* The piece of a line along which it is the fastest. */
typedef struct hp_plot_comm_fastest {
    int line;
    hp_plot_comm_line piece;
} hp_plot_comm_fastest;
/* An operation among so many ranks, and the ways to do it. */
typedef struct hp_plot_comm_panel {
    hp_collective what;
    int ranks, nodes, n_line, n_fastest;
    hp_plot_comm_line *line;
    hp_plot_comm_fastest *fastest;
} hp_plot_comm_panel;
typedef struct hp_plot_comm_source {
    const char *path, *origin; /* of the cost table: its file; where and when it was measured */
    int n;
    hp_plot_comm_panel *panel;
} hp_plot_comm_source;
/* As many panels as there is room for, those with several lines first. Errors: HP_EDATA (there are none). */
hp_status hp_plot_comm(const hp_plot_comm_source *s, hp_canvas *c, hp_error *err);

/* What a way of balancing had found on a chain when it last got better: after so many configurations, and steps of the best
 * one in time; the slowest stage against the best one's. */
typedef struct hp_plot_balance_step {
    double tries, spent, ratio;
} hp_plot_balance_step;
/* A way of balancing: its steps on each chain, none where it was not tried. */
typedef struct hp_plot_balance_line {
    const char *name;
    const int *n_step;
    const hp_plot_balance_step *const *step;
} hp_plot_balance_line;
/* What they found against tries and time, over n chains; at most 16 ways. */
hp_status hp_plot_balance(const hp_plot_balance_line *line, int n_line, int n, hp_canvas *c, hp_error *err);

/* The `error` of a history: steps, predicted with their intervals, against measured, as they were and at equal machine
 * speed. use: per entry, whether it counts; `line`: what the figures say. Errors: HP_EDATA (no run counts). */
hp_status hp_plot_history(const hp_ledger_entry *e, const bool *use, int n, const char *line, hp_canvas *c,
                          hp_error *err);

/* The candidates on the front of memory, images/s and device hours (base/front.h), as stored or else found anew.
 * front: room for all. Returns how many. */
int hp_plot_front(hp_arena *arena, const hp_plot_source *s, const hp_plot_candidate **front);

typedef struct hp_plot_kind {
    const char *name, *meaning;
    hp_plot_draw *draw; /* of what `load` reads; both NULL: of a cost table, hp_plot_comm */
    hp_plot_loader *load;
    int max_files;
    int width, height; /* pixels */
} hp_plot_kind;
extern const hp_plot_kind hp_plot_kinds[]; /* ends with a NULL name */
const hp_plot_kind *hp_plot_find(const char *name);

/* "resnet50  dp=2,stages=2  4 ranks on local (cpu)" */
const char *hp_plot_caption(hp_arena *arena, const hp_plot_source *s);

/* Colour of each phase, by hp_phase: part of a gnuplot string ("'#...' '#...'"), shared by all scripts. */
extern const char hp_plot_phases[];

#endif
