/* comm_predict.h - predicts the results of `bench comm` on a machine from a cost table, without running
 * anything. */
#ifndef HP_COMM_PREDICT_H
#define HP_COMM_PREDICT_H

#include "cli/bench/comm_run.h"
#include "costmodels/table.h"

/* Places ranks on the machine, one node after another. ranks 0: all devices of a node, or of all nodes if
 * each has one. per_node 0: the number of devices per node. Errors: HP_EPLAN (more than the machine has),
 * HP_EUSAGE. */
hp_status comm_predict_place(const hp_machine *m, comm_request *r, hp_error *err);

/* *result is like that of comm_run, but with `predicted`, and for each time `low_s`, `high_s` and `source`
 * instead of samples; the caller releases it. Uses only r's series, type, reduction, ranks, root and
 * sizes. */
void comm_predict(const hp_cost_table *t, const hp_machine *m, const comm_request *r, json_t **result);

#endif
