/* eval_show.h - the results of `eval` as text and as JSON. The first result is the reference. */
#ifndef HP_EVAL_SHOW_H
#define HP_EVAL_SHOW_H

#include "cli/cli.h"
#include "cli/commands/eval_run.h"

/* Print as a table; the same as one JSON object. */
void eval_print(const eval_result *r, int n);
json_t *eval_json(const eval_setup *s, const eval_result *r, int n);

#endif
