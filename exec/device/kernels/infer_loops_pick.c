/* infer_loops_pick.c - chooses the loops' instruction set from what the processor reports: as exec/device/kernels/kernels.c.
 */
#include "exec/device/kernels/infer_loops.h"

#include "exec/device/kernels/kernels.h"

#include <string.h>

const hp_infer_loops *hp_infer_loops_pick(bool f64) {
    static const hp_infer_loops *const sets[] = {&hp_infer_loops_avx512, &hp_infer_loops_avx2,
                                                 &hp_infer_loops_base};
    const char *isa = hp_kernels_pick()->isa;
    for (size_t i = 0; !f64 && i < sizeof sets / sizeof *sets; i++)
        if (strcmp(sets[i]->isa, isa) == 0) return sets[i];
    return &hp_infer_loops_f64;
}
