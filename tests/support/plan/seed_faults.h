/* seed_faults.h - injects one fault into a copy of a program: what a lowering may get wrong, and what
 * a file may contain. */
#ifndef HP_TESTS_SEED_FAULTS_H
#define HP_TESTS_SEED_FAULTS_H

#include "plan/program/program.h"
#include "tests/support/plan/random_net.h"

#include <string.h>

enum { FAULTS = 30 };

/* A program to be damaged: the copy has its own arrays. */
typedef struct victim {
    hp_arena *arena;
    const hp_graph *g;
    hp_program *p;
    hp_role *r; /* the role chosen */
    int role;
    dice d;
} victim;

hp_program *copy_program(hp_arena *arena, const hp_graph *g, const hp_program *from);

typedef bool task_filter(const victim *v, const hp_task *t);

/* A random task of the role that the filter accepts, searched from a random start; NULL: none. */
hp_task *pick_task(victim *v, task_filter *wanted);
bool is_recv(const victim *v, const hp_task *t);
bool is_forward(const victim *v, const hp_task *t);

/* Removes the task and every dependency on it. */
bool drop(hp_role *r, const hp_task *t);
bool exchanged_tags(victim *v);
bool missing_transfer(victim *v);
bool wrong_count(victim *v);
bool wrong_type(victim *v);
bool wrong_peer(victim *v);
bool wrong_channel(victim *v);

/* Two messages of the same size carry each other's content. */
bool swapped_messages(victim *v);

/* A message's box has the same size but another shape. */
bool bent_box(victim *v);
bool missing_copy(victim *v);

/* No task depends on a message that is read. */
bool missing_wait(victim *v);

/* A layer reads another tensor. */
bool wrong_operand(victim *v);

/* A layer reads its tensor of another micro-batch. */
bool wrong_micro(victim *v);

/* Two operands of one task lie at the same place. */
bool shared_memory(victim *v);
bool little_scratch(victim *v);
bool later_dependency(victim *v);

struct fault {
    const char *name;
    bool (*inject)(victim *v); /* false if the program has no place for it */
};

extern const struct fault faults[FAULTS];

#endif
