/* notes.h - short notes between two processes of a node without system calls: a queue in shared memory with
 * one writer and one reader (Lamport 1983). Each slot tells whether it is free, so a note costs the transfer
 * of one cache line. */
#ifndef HP_NOTES_H
#define HP_NOTES_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    HP_NOTE_SLOTS = 64,
    HP_NOTE_LINE = 64, /* bytes of a cache line, the size of a slot */
    HP_NOTE_BYTES = 32 /* bytes of a message sent inside its note */
};

typedef struct hp_note {
    int64_t offset, bytes; /* position of a message in the sender's memory */
    int32_t tag;
    int32_t op; /* index of the sender's operation */
    unsigned char data[HP_NOTE_BYTES];
} hp_note;

typedef struct hp_note_slot {
    alignas(HP_NOTE_LINE) _Atomic uint64_t turn; /* lap n: 2n if free, 2n + 1 if it holds a note */
    hp_note note;
} hp_note_slot;
_Static_assert(sizeof(hp_note_slot) == HP_NOTE_LINE, "a note costs one cache line");

/* One end of a queue of HP_NOTE_SLOTS slots, initially zero. */
typedef struct hp_note_queue {
    hp_note_slot *slot;
    uint64_t next;
} hp_note_queue;

/* Writer: false if there is no room. The reader of the note sees everything written before it. */
bool hp_note_put(hp_note_queue *q, const hp_note *note);
/* Reader: false if there is no note. */
bool hp_note_get(hp_note_queue *q, hp_note *note);

#endif
