/* check_inside.h - the parts of hp_program_check, one file each.
 *
 * A plan.db may come from a stranger, and the executor takes addresses, sizes and orders from the program
 * without looking again: what these files prove is all that stands between the two. */
#ifndef HP_CHECK_INSIDE_H
#define HP_CHECK_INSIDE_H

#include "plan/check/check.h"
#include "plan/program/operands.h"
#include "plan/program/program.h"
#include "plan/program/ready.h"

/* --- check/check.c --- */

/* Where a proof fails: a task of a role. */
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

/* E-RANGE: members ascending and in range; group 0 is everybody. */
hp_status hp_check_groups(const hp_program *p, hp_error *err);
/* E-RANGE, E-OVERLAP: every parameter's rows lie in the role's arrays, each row has one home, and the group
 * that shares them holds the same rows on every member. */
hp_status hp_check_places(const hp_program *p, const hp_graph *g, hp_error *err);

/* Parameters of a role, the trained ones or the running statistics, in memory order. */
typedef struct hp_placed {
    int32_t n, *param;
} hp_placed;
hp_placed hp_placed_params(hp_arena *arena, const hp_role *r, const hp_graph *g, bool trained);
/* Index of the first that ends after element `from`. */
int hp_placed_from(const hp_role *r, const hp_placed *l, int64_t from);

/* --- check/check_buckets.c --- */

/* E-RANGE: a role's buckets follow each other without gaps, each in equal parts for those who hold it. */
hp_status hp_check_bucket_list(const hp_program *p, int role, hp_error *err);
/* E-RANGE, E-MATCH: every trained parameter lies in a bucket of its group; blocks have room for their buckets. */
hp_status hp_check_buckets(const hp_program *p, const hp_graph *g, hp_error *err);
/* E-RANGE, E-TYPE: a task about a bucket. */
hp_status hp_check_bucket_task(const hp_check_at *at);

/* --- check/check_collectives.c --- */

/* E-RANGE, E-COUNT: of all calls. */
hp_status hp_check_calls(const hp_program *p, hp_error *err);
/* E-RANGE, E-ROOT, E-COUNT, E-TYPE: a task's call and algorithm, of a collective or not. */
hp_status hp_check_collective(const hp_program *p, int role, int task, hp_error *err);

/* --- check/check_buffers.c, check/check_boxes.c --- */

/* E-BOX: boxes lie in their tensors and fill their bytes. */
hp_status hp_check_buffers(const hp_program *p, const hp_graph *g, hp_error *err);
/* E-BOX: every task works between boxes that fit each other, the layer and the buffers. */
hp_status hp_check_boxes(const hp_program *p, const hp_graph *g, hp_error *err);

/* --- check/check_codes.c --- */

/* E-TYPE, E-RANGE, E-COUNT, E-BOX: codes have codecs and sizes that exist, and only tasks that know codes use them. */
hp_status hp_check_codes(const hp_program *p, const hp_graph *g, hp_error *err);
/* The task that makes a code; NULL: none. */
const hp_task *hp_check_encoder(const hp_role *r, int32_t code);

/* --- check/check_packs.c --- */

/* Narrows `out` to the output channels of a layer whose weights are here; all of a transposed convolution. */
void hp_pack_rows(const hp_check_at *at, const hp_layer *l, hp_box *out);
/* Bytes of a layer's packed weights that the device wants; 0: it reads them as they are. */
int64_t hp_pack_wanted(const hp_check_at *at, int layer, bool backward);
/* E-BOX: of a role. */
hp_status hp_check_packs(const hp_check_at *at);

/* --- check/check_deployed.c --- */

/* E-TYPE, E-RANGE, E-BOX, E-LOST: what only programs of deployed graphs have, and may not have. */
hp_status hp_check_deployed(hp_arena *arena, const hp_program *p, const hp_graph *g, hp_error *err);

/* --- check/check_region.c --- */

/* Parts of a buffer's box. */
typedef struct hp_region {
    bool whole; /* all of it; else: */
    int32_t n, room;
    hp_box *part;
} hp_region;
bool hp_region_covers(const hp_region *r, const hp_box *box);
/* Adds a part of the box `whole`; false: too many parts. */
bool hp_region_add(hp_arena *arena, hp_region *r, const hp_box *box, const hp_box *whole);
/* Does `other` cover all of r? */
bool hp_region_within(const hp_region *r, const hp_region *other, const hp_box *whole);

/* --- check/check_data.c --- */

/* What a message carries: a tensor and whether it is the tensor's gradient; tensor -1: not known. */
typedef struct hp_payload {
    int32_t tensor;
    int8_t gradient; /* -1: not known */
} hp_payload;

/* E-UNSET, E-LOST, E-BOX: everything that is read was written before, by a task that computes what the reader
 * takes it for. Writes payload[role][task] of sends. */
hp_status hp_check_data(hp_arena *arena, const hp_program *p, const hp_graph *g, hp_payload ***payload,
                        hp_error *err);

/* --- check/check_gradients.c --- */

/* E-UNSET, E-LOST, E-MATCH: gradients of parameters are summed, reduced and applied once. */
hp_status hp_check_gradients(const hp_program *p, const hp_graph *g, hp_error *err);

/* --- check/check_messages.c --- */

/* E-MATCH, E-COUNT, E-TYPE, E-ORDER, E-BOX: the two ends of every message, the members of every collective.
 */
hp_status hp_check_messages(hp_arena *arena, const hp_wiring *w, const hp_graph *g,
                            hp_payload *const *payload, hp_error *err);

/* --- check/check_lanes.c --- */

/* E-LANE, and E-DEADLOCK where groups of messages wait for each other: messages that are a device's work (see
 * lanes.h). */
hp_status hp_check_lanes(hp_arena *arena, const hp_wiring *w, const hp_graph *g, hp_error *err);

/* --- check/check_memory.c --- */

/* E-RACE, E-OVERLAP: what uses the same bytes is ordered by queues and dependencies. */
hp_status hp_check_memory(const hp_program *p, const hp_graph *g, hp_error *err);

#endif
