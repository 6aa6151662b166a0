/* explain.h - facts about a stored plan that both forms of `hplan explain` show. */
#ifndef HP_EXPLAIN_H
#define HP_EXPLAIN_H

#include "plan/store.h"

#include <jansson.h>

enum { EXPLAIN_NAME = 128 };

/* A (virtual) stage: a contiguous range of units and the role that computes it. */
typedef struct explain_stage {
    int stage, role, first_unit, last_unit;
    int64_t params; /* trained elements */
    int64_t macs;   /* of one image's forward pass */
} explain_stage;

int explain_stages(const hp_plan *plan); /* stages x chunks */
explain_stage explain_stage_of(const hp_plan *plan, int stage);

/* What the unit's layers have in common ("layer1.0" for layer1.0.conv1 ...), else "first .. last"; no control
 * characters. `out` holds EXPLAIN_NAME bytes. */
const char *explain_unit_name(const hp_graph *g, int unit, char *out);

/* {schema, net, ..., units:[...], stages:[...], roles:[{..., tasks:[...]}]}; tasks only of `role`, -1 = all
 * roles. */
json_t *explain_json(const hp_plan *plan, int role);

#endif
