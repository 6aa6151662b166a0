/* gate.h - what `check` says of a comparison: as a table, as Markdown, as JUnit XML, as JSON. */
#ifndef HP_GATE_H
#define HP_GATE_H

#include "cli/cli.h"
#include "traces/check/trace_check.h"

typedef struct gate {
    hp_arena *arena;
    const hp_check *check;
    const hp_check_side *old, *new;
} gate;

/* --- cells and lines, the same in every form --- */

enum { GATE_CELL = 64, GATE_LINE = 256 };

const char *gate_value(const hp_check_row *r, const hp_check_value *v,
                       char out[GATE_CELL]); /* "12.3 ms ± 2%" */
const char *gate_change(const hp_check *c, const hp_check_row *r,
                        char out[GATE_CELL]); /* "+8.00%", "~", "?", "" */
const char *gate_p(const hp_check *c, const hp_check_row *r, char out[GATE_CELL]);
const char *gate_word(const hp_check_row *r); /* "regression", "better", otherwise "" */
/* Why a row fails: "step is worse than the limit of 5%". */
const char *gate_reason(const hp_check_row *r, char out[GATE_LINE]);
/* What the runs are of and where they were made; a side whose runs differ in it has "several". */
typedef struct gate_fact {
    const char *name, *old, *new;
    bool same;
} gate_fact;
enum { GATE_FACTS = 6 }; /* strategy, machine, device, host, processor, hplan: version and commit */
void gate_facts(const gate *g, gate_fact fact[GATE_FACTS]);
#define GATE_SIGNS "change: (run - baseline) / baseline, + is slower or more"
/* What ± and ~ stand for, and which samples were compared. */
const char *gate_chance(const hp_check *c, char out[GATE_LINE]);
const char *gate_samples(const hp_check *c, char out[GATE_LINE]);
/* "ok: no regression"; or that there are too few samples to tell; "" where enough show a regression. */
const char *gate_result(const hp_check *c, char out[GATE_LINE]);

/* --- forms --- */

void gate_print_table(const gate *g);
void gate_print_markdown(const gate *g);
json_t *gate_json(const gate *g);
/* JUnit XML, as GitLab and Jenkins read it: a test case per row that is judged, skipped where there are too
 * few samples. `path`: "-" is stdout. Errors: HP_ECREATE, HP_EIO. */
hp_status gate_write_junit(const gate *g, const char *path, hp_error *err);

#endif
