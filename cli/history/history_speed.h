/* history_speed.h - the speed of the machine during a run, and the prediction at that speed. */
#ifndef HP_HISTORY_SPEED_H
#define HP_HISTORY_SPEED_H

#include "cli/cli.h"
#include "costmodels/table.h"
#include "plan/store/store.h"
#include "traces/check/compare_speed.h"

typedef struct run_speed {
    double slowdown[HP_SPEED_CLASSES];      /* the run against the quiet machine; NaN: unknown */
    double predicted_for[HP_SPEED_CLASSES]; /* the speed for which the cost table predicts */
    double availability;                    /* fraction of the steps in which ranks had a processor; NaN:
                                             * unknown */
    hp_speed_split split;
} run_speed;

/* Nothing is known. */
run_speed run_speed_unknown(void);

/* Reads the speed for a comparison with a prediction, given its plan and cost table, its trace, and the run's
 * file and trace. Sets expected_s and model_error of the comparison's rows. Everything stays unknown without
 * yardsticks in both table and run, and on GPUs. Errors: HP_EDATA. */
hp_status run_speed_read(hp_arena *arena, const hp_plan *plan, const hp_cost_table *table, const hp_trace *a,
                         hp_db *db, const hp_trace *b, hp_comparison *c, run_speed *out, hp_error *err);

/* The same for two files, or one that holds both (path_b NULL). The speed stays unknown if a file lacks a
 * plan or table, or holds another plan. */
void run_speed_of_files(hp_arena *arena, const char *path_a, const char *path_b, const hp_trace *a,
                        const hp_trace *b, hp_comparison *c, run_speed *out);

/* "the machine was 28% slower than when quiet (arith 25%, l2 30%, dram 31%, availability 97%), 9% slower than
 * the cost table's usual speed; at equal speed the model is off by 3%"; "" if unknown. */
enum { RUN_SPEED_TEXT = 400 };
const char *run_speed_text(const run_speed *s, char out[RUN_SPEED_TEXT]);
/* {"slower_than_quiet": 0.28, …}; null if unknown. */
json_t *run_speed_json(const run_speed *s);

/* A ratio of times as "28% slower", "3% faster" or "as fast". */
const char *run_speed_ratio(double ratio, char out[32]);
const char *run_speed_than(double ratio); /* "than"; "as" after "as fast" */

#endif
