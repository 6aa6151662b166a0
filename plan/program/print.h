/* print.h - ranks in words, for the program's own text and for `hplan explain`. */
#ifndef HP_PROGRAM_PRINT_H
#define HP_PROGRAM_PRINT_H

#include "plan/program/program.h"

/* What a role does: "stage 1 part 2 of 4 + mirrored stage 0". `out` holds n bytes. */
const char *hp_role_label(const hp_program *p, int role, char *out, size_t n);

#endif
