/* notes.c - a queue with one writer and one reader, in shared memory. */
#include "exec/comm/notes.h"

static hp_note_slot *slot_of(const hp_note_queue *q) {
    return &q->slot[q->next % HP_NOTE_SLOTS];
}

static bool has_turn(const hp_note_queue *q, uint64_t turn) {
    return atomic_load_explicit(&slot_of(q)->turn, memory_order_acquire) == turn;
}

static void pass_on(hp_note_queue *q, uint64_t turn) {
    atomic_store_explicit(&slot_of(q)->turn, turn, memory_order_release);
    q->next++;
}

bool hp_note_put(hp_note_queue *q, const hp_note *note) {
    const uint64_t turn = 2 * (q->next / HP_NOTE_SLOTS);
    if (!has_turn(q, turn)) return false;
    slot_of(q)->note = *note;
    pass_on(q, turn + 1);
    return true;
}

bool hp_note_get(hp_note_queue *q, hp_note *note) {
    const uint64_t turn = 2 * (q->next / HP_NOTE_SLOTS) + 1;
    if (!has_turn(q, turn)) return false;
    *note = slot_of(q)->note;
    pass_on(q, turn + 1);
    return true;
}
