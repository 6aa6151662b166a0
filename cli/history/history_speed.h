/* history_speed.h - the speed of the machine during a run, and what the prediction would have been at that speed. */
#ifndef HP_HISTORY_SPEED_H
#define HP_HISTORY_SPEED_H

#include "cli/cli.h"
#include "costmodels/table.h"
#include "plan/store/store.h"
#include "traces/check/compare_speed.h"

typedef struct run_speed {
    double slowdown[HP_SPEED_CLASSES];      /* of the run against the quiet machine; NaN: not known */
    double predicted_for[HP_SPEED_CLASSES]; /* that of the cost table */
    double availability;                    /* share of the steps in which ranks had a processor; NaN */
    hp_speed_split split;
} run_speed;

/* Nothing is known. */
run_speed run_speed_unknown(void);

/* Of a comparison of a prediction: the plan and cost table that it rests on, its trace, the file and trace of the run.
 * Sets expected_s and model_error of the comparison's rows. Nothing is known without yardsticks in both table and run, nor
 * on GPUs. Errors: HP_EDATA. */
hp_status run_speed_read(hp_arena *arena, const hp_plan *plan, const hp_cost_table *table, const hp_trace *a,
                         hp_db *db, const hp_trace *b, hp_comparison *c, run_speed *out, hp_error *err);

/* The same of two files, or one that holds both (path_b NULL). A file without plan or table, whose plan is another, leaves it
 * unknown. */
void run_speed_of_files(hp_arena *arena, const char *path_a, const char *path_b, const hp_trace *a,
                        const hp_trace *b, hp_comparison *c, run_speed *out);

/* "the machine was 28% slower than when quiet (arith 25%, l2 30%, dram 31%, availability 97%), 9% slower than the cost
 * table's usual speed; at equal speed the model is off by 3%"; "" where nothing is known. */
enum { RUN_SPEED_TEXT = 400 };
const char *run_speed_text(const run_speed *s, char out[RUN_SPEED_TEXT]);
/* {"slower_than_quiet": 0.28, …}; null where nothing is known. */
json_t *run_speed_json(const run_speed *s);

/* "28% slower", "3% faster", "as fast" of a ratio of times. */
const char *run_speed_ratio(double ratio, char out[32]);
const char *run_speed_than(double ratio); /* "than", or "as" after "as fast" */

#endif
