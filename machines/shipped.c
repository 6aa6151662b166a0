/* shipped.c - published machines from machines/data. They are starting values: measured cost tables take
 * precedence. */
#include "machines/shipped.h"

#include <string.h>

#define MACHINE(symbol, name)                                                                                \
    __asm__(".section .rodata\n"                                                                             \
            ".global hp_machine_data_" #symbol "\n"                                                          \
            "hp_machine_data_" #symbol ":\n"                                                                 \
            ".incbin \"" HPLAN_MACHINE_DIR "/" name ".machine\"\n"                                           \
            ".byte 0\n"                                                                                      \
            ".previous\n");                                                                                  \
    extern const char hp_machine_data_##symbol[];
#include "machines/shipped.def"
#undef MACHINE

static const struct {
    const char *name, *text;
} machines[] = {
#define MACHINE(symbol, name) {name, hp_machine_data_##symbol},
#include "machines/shipped.def"
#undef MACHINE
};
enum { N_MACHINES = sizeof machines / sizeof machines[0] };

const char *hp_machine_shipped_name(int i) {
    return i >= 0 && i < N_MACHINES ? machines[i].name : NULL;
}

const char *hp_machine_shipped(const char *name) {
    for (int i = 0; i < N_MACHINES; i++)
        if (strcmp(machines[i].name, name) == 0) return machines[i].text;
    return NULL;
}

const char *hp_machine_names(void) {
    static const char names[] =
#define MACHINE(symbol, name) ", " name
#include "machines/shipped.def"
#undef MACHINE
        ;
    return names + 2;
}
