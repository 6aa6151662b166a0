/* messages.h - a program of messages alone. Each end of a message is a queue of its own with one task, so all
 * start together. */
#ifndef HP_TESTS_MESSAGES_H
#define HP_TESTS_MESSAGES_H

#include "base/arena.h"
#include "plan/program/program.h"

typedef struct message {
    int from, to, channel;
    int64_t count; /* float32 elements */
} message;

hp_program *message_program(hp_arena *arena, int ranks, const message *m, int n, hp_backend by);

#endif
