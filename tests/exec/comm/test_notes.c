/* test_notes.c - a queue of notes is a queue: whatever is put arrives once, complete and in order, and it
 * holds as many notes as it has slots. */
#include "exec/comm/notes.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { NOTES = 300000 };

static hp_note nth(int64_t i) {
    hp_note note = {.offset = i, .bytes = 3 * i + 1, .tag = (int32_t)(i % 1000), .op = (int32_t)(i % 77)};
    for (int k = 0; k < HP_NOTE_BYTES; k++) note.data[k] = (unsigned char)(i * (k + 1));
    return note;
}

static bool is_nth(const hp_note *note, int64_t i) {
    const hp_note want = nth(i); /* there is no padding */
    return memcmp(note, &want, sizeof want) == 0;
}

static hp_note_slot *new_slots(void) {
    hp_note_slot *slot = aligned_alloc(HP_NOTE_LINE, sizeof *slot * HP_NOTE_SLOTS);
    assert_non_null(slot);
    memset(slot, 0, sizeof *slot * HP_NOTE_SLOTS);
    return slot;
}

static void it_holds_as_many_notes_as_it_has_slots(void **state) {
    (void)state;
    hp_note_slot *slot = new_slots();
    hp_note_queue in = {.slot = slot}, out = {.slot = slot};
    hp_note note = nth(0);
    int64_t put = 0, got = 0;
    srand(1);
    for (int turn = 0; turn < 20000; turn++) {
        if (rand() % 100 < 50 + 45 * ((turn / 500) % 2 ? 1 : -1)) { /* alternately fuller and emptier */
            note = nth(put);
            const bool room = put - got < HP_NOTE_SLOTS;
            assert_int_equal(hp_note_put(&out, &note), room);
            put += room;
        } else {
            const bool any = put > got;
            assert_int_equal(hp_note_get(&in, &note), any);
            if (any) assert_true(is_nth(&note, got));
            got += any;
        }
    }
    assert_true(put > 10 * HP_NOTE_SLOTS);
    free(slot);
}

static void *write_all(void *slot) {
    hp_note_queue out = {.slot = slot};
    for (int64_t i = 0; i < NOTES; i++) {
        const hp_note note = nth(i);
        while (!hp_note_put(&out, &note)) sched_yield();
    }
    return NULL;
}

static void between_two_threads_all_notes_arrive_in_order(void **state) {
    (void)state;
    hp_note_slot *slot = new_slots();
    hp_note_queue in = {.slot = slot};
    pthread_t writer;
    hp_note note;
    int64_t wrong = 0;
    assert_int_equal(pthread_create(&writer, NULL, write_all, slot), 0);
    for (int64_t i = 0; i < NOTES; i++) {
        while (!hp_note_get(&in, &note)) sched_yield();
        wrong += !is_nth(&note, i);
    }
    pthread_join(writer, NULL);
    assert_int_equal(wrong, 0);
    assert_false(hp_note_get(&in, &note));
    free(slot);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_holds_as_many_notes_as_it_has_slots),
        cmocka_unit_test(between_two_threads_all_notes_arrive_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
