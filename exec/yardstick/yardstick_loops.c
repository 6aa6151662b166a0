/* yardstick_loops.c - chooses the yardsticks' instruction set: that of the training kernels. */
#include "exec/yardstick/yardstick_loops.h"

#include "exec/device/kernels/kernels.h"

#include <string.h>

const hp_yard_loops *hp_yard_loops_pick(void) {
    static const hp_yard_loops *const ALL[] = {&hp_yard_loops_avx512, &hp_yard_loops_avx2};
    const char *isa = hp_kernels_pick()->f32->isa;
    for (size_t i = 0; i < sizeof ALL / sizeof *ALL; i++)
        if (strcmp(ALL[i]->isa, isa) == 0) return ALL[i];
    return &hp_yard_loops_base;
}
