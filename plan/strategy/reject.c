/* reject.c - codes of rejects and their texts. */
#include "plan/strategy/reject.h"

#include <string.h>

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
