/* print.h - tasks, ranks and whole programs in words. */
#ifndef HP_PRINT_H
#define HP_PRINT_H

#include "plan/program/program.h"

#include <stdio.h>

/* Short name of a task: "fwd layer1.0.conv1 m2", "send layer2 -> rank 1 m0". `out` holds n bytes. */
const char *hp_task_label(const hp_program *p, const hp_graph *g, const hp_role *r, int task, char *out,
                          size_t n);
void hp_program_print(FILE *f, const hp_program *p, const hp_graph *g, int role);
void hp_program_dot(FILE *f, const hp_program *p, const hp_graph *g);

#endif
