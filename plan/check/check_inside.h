/* check_inside.h - the parts of hp_program_check, one file each.
 *
 * A plan.db may come from a stranger, and the executor uses the program's addresses, sizes and orders
 * unchecked. Only these proofs protect it. */
#ifndef HP_CHECK_INSIDE_H
#define HP_CHECK_INSIDE_H

#include "plan/check/check.h"
#include "plan/program/operands.h"
#include "plan/program/program.h"
#include "plan/program/ready.h"

/* --- check/check.c --- */

/* Role and task at which a proof fails. */
typedef struct hp_check_at {
    const hp_program *p;
    const hp_graph *g;
    int role, task; /* task -1: the role as a whole */
    hp_error *err;
} hp_check_at;
/* "CODE: rank 1 task 7 (fwd conv1 m0): ...". Returns HP_EPLAN. */
hp_status hp_check_refuse(const hp_check_at *at, const char *code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* --- check/check_places.c: groups, where parameters lie --- */

/* E-RANGE: members ascend and are in range; group 0 contains all ranks. */
hp_status hp_check_groups(const hp_program *p, hp_error *err);
/* E-RANGE, E-OVERLAP: every parameter's rows lie in the role's arrays, each row has one home, and the group
 * that shares them holds the same rows on every member. */
hp_status hp_check_places(const hp_program *p, const hp_graph *g, hp_error *err);

/* Parameters of a role in memory order: either the trained ones or the running statistics. */
typedef struct hp_placed {
    int32_t n, *param;
} hp_placed;
hp_placed hp_placed_params(hp_arena *arena, const hp_role *r, const hp_graph *g, bool trained);
/* Index of the first parameter that ends after element `from`. */
int hp_placed_from(const hp_role *r, const hp_placed *l, int64_t from);

/* --- check/check_buckets.c --- */

/* E-RANGE: a role's buckets are contiguous, each split into equal parts for its holders. */
hp_status hp_check_bucket_list(const hp_program *p, int role, hp_error *err);
/* E-RANGE, E-MATCH: every trained parameter lies in a bucket of its group; blocks have room for their
 * buckets. */
hp_status hp_check_buckets(const hp_program *p, const hp_graph *g, hp_error *err);
/* E-RANGE, E-TYPE: checks a task that works on a bucket. */
hp_status hp_check_bucket_task(const hp_check_at *at);

/* --- check/check_collectives.c --- */

/* E-RANGE, E-COUNT: checks all calls. */
hp_status hp_check_calls(const hp_program *p, hp_error *err);
/* E-RANGE, E-ROOT, E-COUNT, E-TYPE: checks the call and algorithm of any task, collective or not. */
hp_status hp_check_collective(const hp_program *p, int role, int task, hp_error *err);

/* --- check/check_buffers.c, check/check_boxes.c --- */

/* E-BOX: boxes lie in their tensors and fill their bytes. */
hp_status hp_check_buffers(const hp_program *p, const hp_graph *g, hp_error *err);
/* E-BOX: the boxes of every task fit each other, the layer and the buffers. */
hp_status hp_check_boxes(const hp_program *p, const hp_graph *g, hp_error *err);

/* --- check/check_codes.c --- */

/* E-TYPE, E-RANGE, E-COUNT, E-BOX: codes have an existing codec and a matching size, and only tasks that know
 * codes use them. */
hp_status hp_check_codes(const hp_program *p, const hp_graph *g, hp_error *err);
/* The task that encodes `code`; NULL if none does. */
const hp_task *hp_check_encoder(const hp_role *r, int32_t code);

/* --- check/check_packs.c --- */

/* Narrows `out` to the output channels whose weights are local; a transposed convolution keeps all
 * channels. */
void hp_pack_rows(const hp_check_at *at, const hp_layer *l, hp_box *out);
/* Bytes of packed weights that the device wants for a layer; 0 if it reads the canonical weights. */
int64_t hp_pack_wanted(const hp_check_at *at, int layer, bool backward);
/* E-BOX: checks the packs of a role. */
hp_status hp_check_packs(const hp_check_at *at);

/* --- check/check_deployed.c --- */

/* E-TYPE, E-RANGE, E-BOX, E-LOST: checks what only deployed graphs may have, and what they must not have. */
hp_status hp_check_deployed(hp_arena *arena, const hp_program *p, const hp_graph *g, hp_error *err);

/* --- check/check_region.c --- */

/* Parts of a buffer's box. */
typedef struct hp_region {
    bool whole; /* all of the box; otherwise: */
    int32_t n, room;
    hp_box *part;
} hp_region;
bool hp_region_covers(const hp_region *r, const hp_box *box);
/* Adds a part of the box `whole`; false: too many parts. */
bool hp_region_add(hp_arena *arena, hp_region *r, const hp_box *box, const hp_box *whole);
/* Does `other` cover all of r? */
bool hp_region_within(const hp_region *r, const hp_region *other, const hp_box *whole);

/* --- check/check_data.c --- */

/* Content of a message: a tensor, or its gradient; tensor -1 if unknown. */
typedef struct hp_payload {
    int32_t tensor;
    int8_t gradient; /* -1: not known */
} hp_payload;

/* E-UNSET, E-LOST, E-BOX: everything read was written before, by a task that computes what the reader
 * expects. Writes payload[role][task] of sends. */
hp_status hp_check_data(hp_arena *arena, const hp_program *p, const hp_graph *g, hp_payload ***payload,
                        hp_error *err);

/* --- check/check_gradients.c --- */

/* E-UNSET, E-LOST, E-MATCH: gradients of parameters are summed, reduced and applied exactly once. */
hp_status hp_check_gradients(const hp_program *p, const hp_graph *g, hp_error *err);

/* --- check/check_messages.c --- */

/* E-MATCH, E-COUNT, E-TYPE, E-ORDER, E-BOX: both ends of every message, and all members of every collective,
 * agree. */
hp_status hp_check_messages(hp_arena *arena, const hp_wiring *w, const hp_graph *g,
                            hp_payload *const *payload, hp_error *err);

/* --- check/check_lanes.c --- */

/* E-LANE, and E-DEADLOCK for cycles between groups of messages: checks messages that run as device work (see
 * lanes.h). */
hp_status hp_check_lanes(hp_arena *arena, const hp_wiring *w, const hp_graph *g, hp_error *err);

/* --- check/check_memory.c --- */

/* E-RACE, E-OVERLAP: queues and dependencies order all uses of the same bytes. */
hp_status hp_check_memory(const hp_program *p, const hp_graph *g, hp_error *err);

#endif
