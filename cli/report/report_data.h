/* report_data.h - what `hplan report` shows: the files as read, and one JSON object per section of the page
 * (plots/report/page.html), which draws it. Times are seconds, sizes bytes; a section that cannot be made is
 * {"absent": why, "command": what would make it}. */
#ifndef HP_REPORT_DATA_H
#define HP_REPORT_DATA_H

#include "cli/cli.h"
#include "base/arena.h"
#include "plots/plots.h"
#include "sim/costs/costs.h"
#include "sim/search/evaluate.h"

/* The first file's plan is the subject. The measurement is the first run of that plan; candidates of all
 * files are in the chart of scaling. */
typedef struct report {
    hp_arena *arena;
    int n;
    hp_plot_source *source;
    hp_plan plan;
    const char *strategy; /* the plan's, as its candidate spells it */
    hp_eval_setup setup;
    hp_eval *eval;
    hp_evaluation figures;
    const hp_cost_table *table;
    const hp_graph *graph;         /* as the strategy's ranks run it */
    const hp_program_costs *costs; /* of the plan's tasks */
    hp_candidate *candidate;
    int n_candidate, chosen; /* chosen: the plan's; -1: none */
    const hp_trace *sim, *exec;
    const char *path, *exec_path; /* the subject's file, and that of its measurement */
} report;

/* Errors: HP_EDATA (a file without a plan), those of hp_db_open. */
hp_status report_read(hp_arena *arena, const char *const *path, int n, report *r, hp_error *err);

json_t *report_answer(const report *r);
/* One row per family, and always plain data parallelism; of other numbers of devices the best. Errors: those
 * of hp_evaluate. */
hp_status report_candidates(const report *r, json_t **out, hp_error *err);
json_t *report_timeline(const report *r);
json_t *report_memory(const report *r);
json_t *report_scaling(const report *r);
json_t *report_pareto(const report *r);
json_t *report_errors(const report *r);
json_t *report_basis(const report *r);

/* --- report_memory_parts.c --- */

enum { REPORT_PARTS = 7 };
extern const char *const report_part_names[REPORT_PARTS];
/* A role's memory by what it is for at the moment when most is in use, where the rest of the arena are gaps
 * of its placement; and the most of each part at any moment. A halo is what a tensor's buffer has of other
 * ranks' parts. */
void report_split_memory(const report *r, int role, int64_t parts[REPORT_PARTS], int64_t peaks[REPORT_PARTS]);
/* Memory of a rank, in bytes; on a CPU machine its share of the node's. */
double report_memory_capacity(const report *r);

/* --- report_words.c --- */

/* "resnet101, 1024 x 1024, on 128 devices of thesis-a100" */
const char *report_title(const report *r);
/* What a step takes a batch of: "images", or "sequences" of ids. */
const char *report_samples(const report *r);
/* "hplan VERB FILE" */
const char *report_command(const report *r, const char *verb, const char *path);
/* "hplan VERB --net N --image HxW OPTIONS", of the subject's network and images. */
const char *report_on_subject(const report *r, const char *verb, const char *options);
/* {"absent": why, "command": what would make it} */
json_t *report_absent(const char *why, const char *command);
/* Text of a file, made safe. */
json_t *report_text(const report *r, const char *text);
/* A positive number of a file; null: it is none, or not known. */
json_t *report_known(double v);
json_t *report_names(const char *const *name, int n);

/* Ranks that one row stands for, as the simulator folds them: those of the trace's ranks, at most `most`. */
typedef struct report_row {
    int rank, ranks; /* the one that is shown; how many are like it */
} report_row;
/* recorded: ranks with spans. *left_out: kinds of ranks beyond `most`. Returns their number. */
int report_rows(const report *r, int recorded, int most, report_row **row, int *left_out);

#endif
