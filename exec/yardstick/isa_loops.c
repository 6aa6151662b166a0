/* isa_loops.c - the yardsticks' inner loops for one instruction set, HP_ISA, with vectors
 * of HP_LANES floats. */
#include "exec/yardstick/yardstick_loops.h"

#define JOIN(a, b) a##b
#define TABLE(isa) JOIN(hp_yard_loops_, isa)
#define TEXT_OF(x) #x
#define TEXT(x)    TEXT_OF(x)

typedef float reals __attribute__((vector_size(4 * HP_LANES)));
typedef uint32_t words __attribute__((vector_size(4 * HP_LANES)));

/* x = 3/4 x + 1/16, starting from the chain's index: tends to 1/4, so nothing overflows or
 * becomes subnormal. */
static float multiply_add(int64_t rounds) {
    reals x[HP_YARD_CHAINS], sum = {0};
    const reals a = sum + 0.75F, b = sum + 0.0625F;
    for (int c = 0; c < HP_YARD_CHAINS; c++) x[c] = sum + (float)c;
    for (int64_t r = 0; r < rounds; r++) {
        for (int c = 0; c < HP_YARD_CHAINS; c++) x[c] = x[c] * a + b;
        __asm__ volatile(""); /* keeps the compiler from replacing the loop by its result */
    }
    for (int c = 0; c < HP_YARD_CHAINS; c++) sum += x[c];
    float total = 0;
    for (int l = 0; l < HP_LANES; l++) total += sum[l];
    return total;
}

static uint32_t read_all(const void *data, int64_t bytes) {
    enum { STREAMS = 4 };
    const words *w = data;
    words sum[STREAMS] = {{0}};
    for (int64_t i = 0; i < bytes / (int64_t)sizeof(words); i += STREAMS)
        for (int s = 0; s < STREAMS; s++) sum[s] += w[i + s];
    for (int s = 1; s < STREAMS; s++) sum[0] += sum[s];
    uint32_t total = 0;
    for (int l = 0; l < HP_LANES; l++) total += sum[0][l];
    return total;
}

const hp_yard_loops TABLE(HP_ISA) = {
    .isa = TEXT(HP_ISA), .lanes = HP_LANES, .multiply_add = multiply_add, .read = read_all};
