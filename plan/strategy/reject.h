/* reject.h - why a candidate is not possible: a value, not an error. */
#ifndef HP_REJECT_H
#define HP_REJECT_H

#include <stdbool.h>

typedef enum hp_reject_code {
    HP_FEASIBLE, /* 0: no reject */
#define REJECT(id, text) HP_REJECT_##id,
#include "plan/strategy/rejects.def"
    HP_REJECTS
} hp_reject_code;

enum { HP_FIX_TEXT = 320 };

typedef struct hp_reject {
    hp_reject_code code;
    char limit[160]; /* the limiting number, in words */
    /* A change that would meet the rule (plan/strategy/change.h), alternatives joined by ", or ".
     * hp_search_fix turns it into a change that works, or says that it found none; only then is it shown. */
    char fix[HP_FIX_TEXT];
} hp_reject;

/* Say no: the code and the limiting number, and then what would meet the rule. `why` may be NULL. hp_fix
 * returns false, so that a rule can end with it. */
void hp_refuse(hp_reject *why, hp_reject_code code, const char *limit, ...)
    __attribute__((format(printf, 3, 4)));
bool hp_fix(hp_reject *why, const char *fix, ...) __attribute__((format(printf, 2, 3)));

/* "E-MEM"; HP_FEASIBLE: "". */
const char *hp_reject_text(hp_reject_code code);
/* The code of a text; HP_REJECTS: there is none. */
hp_reject_code hp_reject_find(const char *text);

#endif
