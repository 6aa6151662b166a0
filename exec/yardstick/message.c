/* message.c - the yardsticks of messages; see message.h. */
#include "exec/yardstick/message.h"

#include "base/clock.h"

enum { SMALL_TRIPS = 8, TAG = (1 << 24) + 1 /* above the tags of programs and of the common clock */ };

static hp_status pass_message(const hp_yard_waiter *w, hp_comm_kind kind, void *data, int64_t bytes,
                              hp_error *err) {
    const hp_comm_op op = {.kind = kind,
                           .peer = 1 - w->comm->rank,
                           .tag = TAG,
                           .dtype = HP_F32,
                           .count = bytes / 4,
                           .data = data};
    return hp_yard_wait(w, &op, err);
}

/* Rank 0 sends first. */
static hp_status round_trips(const hp_yard_waiter *w, void *data, int64_t bytes, int trips, double *each_s,
                             hp_error *err) {
    const bool first = w->comm->rank == 0;
    const double start_s = hp_now_s();
    for (int i = 0; i < trips; i++) {
        HP_TRY(pass_message(w, first ? HP_COMM_SEND : HP_COMM_RECV, data, bytes, err));
        HP_TRY(pass_message(w, first ? HP_COMM_RECV : HP_COMM_SEND, data, bytes, err));
    }
    *each_s = (hp_now_s() - start_s) / trips;
    return HP_OK;
}

hp_status hp_yard_messages(const hp_yard_waiter *w, void *scratch, double *small_s, double *large_s,
                           hp_error *err) {
    *small_s = *large_s = 0;
    if (w->comm->size < 2 || w->comm->rank > 1) return HP_OK;
    HP_TRY(round_trips(w, scratch, HP_YARD_SMALL_BYTES, 1, small_s, err));
    HP_TRY(round_trips(w, scratch, HP_YARD_SMALL_BYTES, SMALL_TRIPS, small_s, err));
    HP_TRY(round_trips(w, scratch, HP_YARD_LARGE_BYTES, 1, large_s, err));
    if (w->comm->rank == 1) *small_s = *large_s = 0; /* its clock also counts what rank 0 does in between */
    return HP_OK;
}
