/* pattern.c - fills and checks; see pattern.h. */
#include "exec/bench/pattern.h"

#include "exec/base/half.h"

#include <math.h>
#include <string.h>

/* --- elements --- */

typedef struct type_ops {
    double (*load)(const void *data, int64_t i);
    void (*store)(void *data, int64_t i, double v);
    double exact;    /* whole numbers up to here are exact; none equals the 0xff pattern of unwritten data */
    double rounding; /* relative rounding error of one addition beyond that; 0: sums wrap around */
} type_ops;

#define SAME(v)     (v)
#define AS_F16(v)   to_f16((float)(v))
#define AS_BF16(v)  to_bf16((float)(v))
#define AS_WHOLE(v) (int64_t)(v)
#define TYPE(id, stored, from, to)                                                                           \
    static double load_##id(const void *data, int64_t i) {                                                   \
        return (double)from(((const stored *)data)[i]);                                                      \
    }                                                                                                        \
    static void store_##id(void *data, int64_t i, double v) {                                                \
        ((stored *)data)[i] = (stored)to(v);                                                                 \
    }
TYPE(f32, float, SAME, SAME)
TYPE(f64, double, SAME, SAME)
TYPE(i32, int32_t, SAME, AS_WHOLE)
TYPE(u8, uint8_t, SAME, AS_WHOLE)
TYPE(i8, int8_t, SAME, AS_WHOLE)
TYPE(f16, uint16_t, from_f16, AS_F16)
TYPE(bf16, uint16_t, from_bf16, AS_BF16)

static const type_ops types[HP_DTYPES] = {[HP_F32] = {load_f32, store_f32, 0x1p24, 0x1p-24},
                                          [HP_F64] = {load_f64, store_f64, 0x1p53, 0x1p-53},
                                          [HP_I32] = {load_i32, store_i32, 0x1p31 - 1, 0},
                                          [HP_U8] = {load_u8, store_u8, 254, 0},
                                          [HP_BF16] = {load_bf16, store_bf16, 0x1p8, 0x1p-8},
                                          [HP_F16] = {load_f16, store_f16, 0x1p11, 0x1p-11},
                                          [HP_I8] = {load_i8, store_i8, 127, 0}};

/* Rounds v to the type. */
static double rounded(hp_dtype t, double v) {
    double room = 0;
    types[t].store(&room, 0, v);
    return types[t].load(&room, 0);
}

/* --- values --- */

static bool adds(const hp_bench_case *c) {
    return c->what != HP_BENCH_SENDRECV && hp_collective_infos[c->what].adds;
}

/* Number of distinct values: few enough that sums are exact, at most MOST, at least 2. */
static int64_t values_of(const hp_bench_case *c) {
    static const int64_t MOST = 4096;
    const int64_t exact = (int64_t)types[c->dtype].exact, n = (adds(c) ? exact / c->ranks : exact) + 1;
    return n > MOST ? MOST : n < 2 ? 2 : n;
}

/* The finaliser of MurmurHash3. */
static uint64_t mix(uint64_t x) {
    x = (x ^ x >> 33) * 0xff51afd7ed558ccdu;
    x = (x ^ x >> 33) * 0xc4ceb9fe1a85ec53u;
    return x ^ x >> 33;
}

double hp_bench_value(const hp_bench_case *c, int rank, int64_t i) {
    const int64_t n = values_of(c), apart = n / c->ranks > 0 ? n / c->ranks : 1;
    return (double)(((int64_t)(mix((uint64_t)i + 1) >> 1) % n + rank * apart) % n);
}

static void range_of(const hp_bench_case *c, hp_blocks_of which, int64_t *first, int64_t *n) {
    const int64_t block = c->count / c->ranks;
    const bool own = which == HP_BLOCKS_OWN, none = which == HP_BLOCKS_ROOT && c->me != c->root;
    *first = own ? c->me * block : 0;
    *n = none ? 0 : own ? block : c->count;
}

void hp_bench_begins(const hp_bench_case *c, int64_t *first, int64_t *n) {
    range_of(c, c->what == HP_BENCH_SENDRECV ? HP_BLOCKS_ALL : hp_collective_infos[c->what].begins, first, n);
}

void hp_bench_ends(const hp_bench_case *c, int64_t *first, int64_t *n) {
    range_of(c, c->what == HP_BENCH_SENDRECV ? HP_BLOCKS_ALL : hp_collective_infos[c->what].ends, first, n);
}

void hp_bench_fill(const hp_bench_case *c, void *data, void *source) {
    const size_t bytes = (size_t)(c->count * hp_dtype_bytes(c->dtype));
    int64_t first, n;
    memset(data, 0xff, bytes);
    if (source) memset(source, 0xff, bytes);
    hp_bench_begins(c, &first, &n);
    for (int64_t i = 0; i < n; i++)
        types[c->dtype].store(source ? source : data, source ? i : first + i,
                              hp_bench_value(c, c->me, first + i));
}

/* --- the expected result --- */

static double reduced(const hp_bench_case *c, int64_t i) {
    double v = hp_bench_value(c, 0, i);
    for (int r = 1; r < c->ranks; r++) {
        const double next = hp_bench_value(c, r, i);
        v = c->reduction == HP_REDUCE_MIN   ? fmin(v, next)
            : c->reduction == HP_REDUCE_MAX ? fmax(v, next)
                                            : v + next;
    }
    v = rounded(c->dtype, v);
    if (c->reduction != HP_REDUCE_AVG) return v;
    return rounded(c->dtype, types[c->dtype].rounding > 0 ? v / c->ranks : trunc(v / c->ranks));
}

/* The expected element i at the end. */
static double expected(const hp_bench_case *c, int64_t i) {
    const int64_t block = c->count / c->ranks;
    if (c->what == HP_BENCH_SENDRECV) return hp_bench_value(c, (c->me + c->ranks - 1) % c->ranks, i);
    const hp_collective_info *info = &hp_collective_infos[c->what];
    if (info->adds) return reduced(c, i);
    if (info->begins == HP_BLOCKS_ROOT) return hp_bench_value(c, c->root, i);
    if (info->begins == HP_BLOCKS_OWN) return hp_bench_value(c, (int)(i / block), i);
    return hp_bench_value(c, (int)(i / block), c->me * block + i % block);
}

/* Inexact sums may differ by one rounding per addition. */
static double tolerance(const hp_bench_case *c) {
    const type_ops *t = &types[c->dtype];
    const bool sums = adds(c) && (c->reduction == HP_REDUCE_SUM || c->reduction == HP_REDUCE_AVG);
    const double most = (double)c->ranks * (double)(values_of(c) - 1);
    return sums && most > t->exact ? t->rounding * c->ranks : 0;
}

int64_t hp_bench_wrong(const hp_bench_case *c, const void *data) {
    const double allowed = tolerance(c);
    int64_t first, n, wrong = 0;
    hp_bench_ends(c, &first, &n);
    for (int64_t i = first; i < first + n; i++) {
        const double want = expected(c, i);
        wrong += !(fabs(types[c->dtype].load(data, i) - want) <= allowed * want); /* NaN is wrong */
    }
    return wrong;
}
