/* cost_shipped.c - data/shipped.cost compiled into the binary, so that hplan needs no installed data
 * files. */
#include "costmodels/cost_rows.h"

__asm__(".section .rodata\n"
        ".global hp_shipped_text\n"
        "hp_shipped_text:\n"
        ".incbin \"" HPLAN_COST_DIR "/shipped.cost\"\n"
        ".byte 0\n"
        ".previous\n");

extern const char hp_shipped_text[];

const char *hp_shipped_table(void) {
    return hp_shipped_text;
}
