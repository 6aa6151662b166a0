/* stored_task.c - tasks to the records of plan.db and back. */
#include "plan/store/stored_task.h"

_Static_assert(sizeof(hp_stored_task) == 56, "stored structures have no hidden padding");

hp_stored_task hp_task_to_stored(const hp_task *t) {
    const hp_elements range = hp_task_range(t);
    const hp_rows rows = hp_task_rows(t);
    hp_stored_task s = {.op = t->op,
                        .flags = t->flags,
                        .dtype = t->dtype,
                        .algorithm = t->algorithm,
                        .queue = t->queue,
                        .chunk = t->chunk,
                        .layer = t->layer,
                        .micro = t->micro,
                        .tag = hp_task_bucket(t),
                        .operand = t->operand,
                        .n_operand = t->n_operand,
                        .row_lo = rows.lo,
                        .row_hi = rows.hi,
                        .call = hp_task_call_index(t),
                        .offset = range.first,
                        .count = range.count};
    switch (hp_task_family_of(t)) {
    case HP_FAMILY_FORWARD:
        s.offset = (int64_t)t->forward.skipped * (INT64_C(1) << 32) + t->forward.following;
        s.count = t->forward.pixels;
        break;
    case HP_FAMILY_BACKWARD:
        s.count = t->backward.pixels;
        break;
    case HP_FAMILY_MAXSUM:
        s.offset = t->maxsum.first;
        break;
    case HP_FAMILY_MESSAGE:
        s.tag = t->message.position;
        break;
    case HP_FAMILY_DUMMY:
        s.count = t->dummy.ns;
        break;
    default:
        break;
    }
    return s;
}

static void read_family(const hp_stored_task *s, hp_task *t) {
    const hp_rows rows = {s->row_lo, s->row_hi};
    switch (hp_task_family_of(t)) {
    case HP_FAMILY_NONE:
        break;
    case HP_FAMILY_ROWS:
        t->rows = rows;
        break;
    case HP_FAMILY_FORWARD:
        t->forward.rows = rows;
        t->forward.skipped = (int32_t)(s->offset >> 32);
        t->forward.following = (uint32_t)s->offset;
        t->forward.pixels = s->count;
        break;
    case HP_FAMILY_BACKWARD:
        t->backward.pixels = s->count;
        break;
    case HP_FAMILY_MAXSUM:
        t->maxsum.first = s->offset;
        break;
    case HP_FAMILY_ZERO:
        t->zero.first = s->offset;
        t->zero.elems = s->count;
        break;
    case HP_FAMILY_CODE:
        t->code.bucket = s->tag;
        t->code.first = s->offset;
        t->code.values = s->count;
        break;
    case HP_FAMILY_UPDATE:
        t->update.bucket = s->tag;
        t->update.call = s->call;
        t->update.first = s->offset;
        t->update.elems = s->count;
        break;
    case HP_FAMILY_MESSAGE:
        t->message.position = s->tag;
        t->message.elems = s->count;
        break;
    case HP_FAMILY_COLLECTIVE:
        t->collective.bucket = s->tag;
        t->collective.call = s->call;
        t->collective.first = s->offset;
        t->collective.elems = s->count;
        break;
    case HP_FAMILY_DUMMY:
        t->dummy.ns = s->count;
        break;
    }
}

hp_task hp_task_from_stored(const hp_stored_task *s) {
    hp_task t = {.op = s->op,
                 .flags = s->flags,
                 .dtype = s->dtype,
                 .algorithm = s->algorithm,
                 .queue = s->queue,
                 .chunk = s->chunk,
                 .layer = s->layer,
                 .micro = s->micro,
                 .operand = s->operand,
                 .n_operand = s->n_operand};
    read_family(s, &t);
    return t;
}
