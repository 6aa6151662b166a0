/* reject.c - how rules say no; codes of rejects and their texts. */
#include "plan/strategy/reject.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void hp_refuse(hp_reject *why, hp_reject_code code, const char *limit, ...) {
    if (!why) return;
    va_list ap;
    va_start(ap, limit);
    why->code = code;
    vsnprintf(why->limit, sizeof why->limit, limit, ap);
    va_end(ap);
}

bool hp_fix(hp_reject *why, const char *fix, ...) {
    if (!why) return false;
    va_list ap;
    va_start(ap, fix);
    vsnprintf(why->fix, sizeof why->fix, fix, ap);
    va_end(ap);
    return false;
}

static const char *const texts[HP_REJECTS] = {
    [HP_FEASIBLE] = "",
#define REJECT(id, text) [HP_REJECT_##id] = (text),
#include "plan/strategy/rejects.def"
};

const char *hp_reject_text(hp_reject_code code) {
    return texts[code];
}

hp_reject_code hp_reject_find(const char *text) {
    int code = HP_FEASIBLE + 1;
    while (code < HP_REJECTS && strcmp(texts[code], text) != 0) code++;
    return (hp_reject_code)code;
}
