/* notes.h - short notes from one process of the node to another, without the system's help: a queue in memory that both
 * have mapped, with one writer and one reader (Lamport 1983). A slot says itself whether it is free, so a note costs the
 * transfer of one cache line. */
#ifndef HP_NOTES_H
#define HP_NOTES_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    HP_NOTE_SLOTS = 64,
    HP_NOTE_LINE = 64, /* bytes of a cache line: a slot */
    HP_NOTE_BYTES = 32 /* of a message that comes with its note */
};

typedef struct hp_note {
    int64_t offset, bytes; /* of a message in the sender's memory */
    int32_t tag;
    int32_t op; /* the sender's number of it */
    unsigned char data[HP_NOTE_BYTES];
} hp_note;

typedef struct hp_note_slot {
    alignas(HP_NOTE_LINE) _Atomic uint64_t turn; /* of lap n: 2n, free; 2n + 1, holds a note */
    hp_note note;
} hp_note_slot;
_Static_assert(sizeof(hp_note_slot) == HP_NOTE_LINE, "a note costs one cache line");

/* One end of a queue of HP_NOTE_SLOTS slots, which are zero at first. */
typedef struct hp_note_queue {
    hp_note_slot *slot;
    uint64_t next;
} hp_note_queue;

/* The writer's: false, there is no room now. What was written before is seen by who gets the note. */
bool hp_note_put(hp_note_queue *q, const hp_note *note);
/* The reader's: false, there is none now. */
bool hp_note_get(hp_note_queue *q, hp_note *note);

#endif
