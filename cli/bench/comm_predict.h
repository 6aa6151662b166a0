/* comm_predict.h - what `bench comm` would measure on a machine, from a cost table: nothing runs. */
#ifndef HP_COMM_PREDICT_H
#define HP_COMM_PREDICT_H

#include "cli/bench/comm_run.h"
#include "costmodels/table.h"

/* Ranks fill node after node of the machine. ranks: 0: the devices of a node, of all nodes where these have one each;
 * per_node: 0: as many as a node has devices. Errors: HP_EPLAN (more than the machine has), HP_EUSAGE. */
hp_status comm_predict_place(const hp_machine *m, comm_request *r, hp_error *err);

/* *result: as of comm_run, with `predicted`, and of each time `low_s`, `high_s` and `source` in place of samples; the
 * caller releases it. Only r's series, type, reduction, ranks, root and sizes count. */
void comm_predict(const hp_cost_table *t, const hp_machine *m, const comm_request *r, json_t **result);

#endif
