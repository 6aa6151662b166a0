/* reject.h - why a candidate is not possible: a value, not an error. */
#ifndef HP_REJECT_H
#define HP_REJECT_H

typedef enum hp_reject_code {
    HP_FEASIBLE, /* 0: no reject */
#define REJECT(id, text) HP_REJECT_##id,
#include "plan/strategy/rejects.def"
    HP_REJECTS
} hp_reject_code;

typedef struct hp_reject {
    hp_reject_code code;
    char limit[160]; /* the limiting number, in words */
    char fix[160];   /* the smallest fix: keys and values to replace, or an option of the command */
} hp_reject;

/* "E-MEM"; HP_FEASIBLE: "". */
const char *hp_reject_text(hp_reject_code code);
/* The code of a text; HP_REJECTS: there is none. */
hp_reject_code hp_reject_find(const char *text);

#endif
