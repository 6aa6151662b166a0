/* collective_case.c - collectives by their definitions, element by element. */
#include "tests/support/exec/collective_case.h"

#include "exec/base/half.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* --- numbers of every type as float64, which represents all of them --- */

void collective_put(hp_dtype type, void *at, int64_t i, double v) {
    if (type == HP_F32) ((float *)at)[i] = (float)v;
    if (type == HP_F64) ((double *)at)[i] = v;
    if (type == HP_I32) ((int32_t *)at)[i] = (int32_t)v;
    if (type == HP_U8) ((uint8_t *)at)[i] = (uint8_t)v;
    if (type == HP_I8) ((int8_t *)at)[i] = (int8_t)v;
    if (type == HP_BF16) ((uint16_t *)at)[i] = to_bf16((float)v);
    if (type == HP_F16) ((uint16_t *)at)[i] = to_f16((float)v);
}

double collective_get(hp_dtype type, const void *at, int64_t i) {
    if (type == HP_F32) return (double)((const float *)at)[i];
    if (type == HP_F64) return ((const double *)at)[i];
    if (type == HP_I32) return ((const int32_t *)at)[i];
    if (type == HP_U8) return ((const uint8_t *)at)[i];
    if (type == HP_I8) return ((const int8_t *)at)[i];
    return (double)(type == HP_BF16 ? from_bf16(((const uint16_t *)at)[i])
                                    : from_f16(((const uint16_t *)at)[i]));
}

typedef struct type_facts {
    bool whole;   /* integers, which wrap around at `bits` bits */
    int bits;     /* bits of an integer, or of a significand */
    bool signed_; /* integers */
} type_facts;
static const type_facts facts[HP_DTYPES] = {
    [HP_F32] = {false, 24, true}, [HP_F64] = {false, 53, true}, [HP_I32] = {true, 32, true},
    [HP_U8] = {true, 8, false},   [HP_BF16] = {false, 8, true}, [HP_F16] = {false, 11, true},
    [HP_I8] = {true, 8, true}};

/* Modulo 2^bits. */
static int64_t wrapped(hp_dtype type, int64_t v) {
    const type_facts *f = &facts[type];
    const int64_t all = INT64_C(1) << f->bits, rest = ((v % all) + all) % all;
    return f->signed_ && rest >= all / 2 ? rest - all : rest;
}

/* --- contributions --- */

static uint64_t mixed(uint64_t seed, int member, int64_t i) {
    uint64_t h =
        seed + 0x9e3779b97f4a7c15u * (uint64_t)(member + 1) + 0xbf58476d1ce4e5b9u * (uint64_t)(i + 1);
    h = (h ^ h >> 30) * 0xbf58476d1ce4e5b9u;
    h = (h ^ h >> 27) * 0x94d049bb133111ebu;
    return h ^ h >> 31;
}

/* Element i of a member's contribution, before rounding to its type. */
static double drawn(const collective_test *t, int member, int64_t i) {
    const type_facts *f = &facts[t->op.dtype];
    const uint64_t h = mixed(t->seed, member, i);
    if (f->whole) return (double)wrapped((hp_dtype)t->op.dtype, (int64_t)(h >> 8));
    if (t->values == COLLECTIVE_SPECIAL && h % 5 == 0)
        return h / 5 % 3 == 0 ? (double)NAN : h / 5 % 3 == 1 ? (double)INFINITY : -(double)INFINITY;
    if (t->values == COLLECTIVE_REAL) return ((double)(h >> 11) * 0x1p-53 - 0.5) * 2;
    const int64_t most = (INT64_C(1) << (f->bits < 24 ? f->bits : 24)) / t->n;
    return (double)((int64_t)(h >> 8) % (2 * most + 1) - most);
}

static double contribution(const collective_test *t, int member, int64_t i) {
    unsigned char one[8] = {0};
    collective_put((hp_dtype)t->op.dtype, one, 0, drawn(t, member, i));
    return collective_get((hp_dtype)t->op.dtype, one, 0);
}

/* --- layout --- */

typedef struct run {
    int64_t at, n;
} run;

static bool exchanges(const collective_test *t) {
    return t->op.what == HP_COLLECTIVE_ALL_TO_ALL;
}

/* Equal parts, or the drawn ones; for an all-to-all those from one member to another. */
static int64_t size_of(const collective_test *t, int from, int to) {
    if (exchanges(t)) return t->op.part ? t->op.part[from * t->n + to] : t->op.count / t->n;
    if (t->op.part) return t->op.part[to];
    const int64_t each = (t->op.count + t->n - 1) / t->n, left = t->op.count - to * each;
    return left < 0 ? 0 : left < each ? left : each;
}

static run part_of(const collective_test *t, int i) {
    run r = {0, size_of(t, 0, i)};
    for (int k = 0; k < i; k++) r.at += size_of(t, 0, k);
    return r;
}

static run sent_to(const collective_test *t, int from, int to) {
    run r = {0, size_of(t, from, to)};
    for (int k = 0; k < to; k++) r.at += size_of(t, from, k);
    return r;
}

static run got_from(const collective_test *t, int from, int to) {
    run r = {0, size_of(t, from, to)};
    for (int k = 0; k < from; k++) r.at += size_of(t, k, to);
    return r;
}

/* The member's range of the whole data at the beginning or the end. */
static run held(const collective_test *t, hp_blocks_of which, int member) {
    if (which == HP_BLOCKS_EACH)
        return (run){0, sent_to(t, member, t->n - 1).at + sent_to(t, member, t->n - 1).n};
    if (which == HP_BLOCKS_OWN) return part_of(t, member);
    return (run){0, which == HP_BLOCKS_ROOT && member != t->op.root ? 0 : t->op.count};
}

static const hp_collective_info *info(const collective_test *t) {
    return &hp_collective_infos[t->op.what];
}

int64_t collective_bytes(const collective_test *t) {
    return t->op.count * hp_dtype_bytes((hp_dtype)t->op.dtype);
}

int64_t collective_source_bytes(const collective_test *t, int member) {
    return held(t, info(t)->begins, member).n * hp_dtype_bytes((hp_dtype)t->op.dtype);
}

void collective_fill(const collective_test *t, int member, void *data, void *source) {
    const run mine = held(t, info(t)->begins, member);
    memset(data, 0xa5, (size_t)collective_bytes(t));
    for (int64_t i = 0; i < mine.n; i++)
        collective_put((hp_dtype)t->op.dtype, source ? source : data, source ? i : mine.at + i,
                       drawn(t, member, mine.at + i));
}

/* --- expected results --- */

typedef struct result {
    double value, bound; /* maximum deviation */
} result;

static result integers(const collective_test *t, int64_t i) {
    int64_t sum = 0, least = INT64_MAX, most = INT64_MIN;
    for (int m = 0; m < t->n; m++) {
        const int64_t v = (int64_t)contribution(t, m, i);
        sum += v;
        least = v < least ? v : least;
        most = v > most ? v : most;
    }
    sum = wrapped((hp_dtype)t->op.dtype, sum);
    const int64_t results[HP_REDUCTIONS] = {sum, least, most, sum / t->n};
    return (result){(double)results[t->op.reduction], 0};
}

/* n - 1 additions and a division each round by at most u times the partial sum, which is at most that of all
 * magnitudes. A division may also come first and round each contribution once. */
static double bound_of(const collective_test *t, double magnitudes) {
    const bool average = t->op.reduction == HP_REDUCE_AVG;
    if (!average && t->values != COLLECTIVE_REAL) return 0;
    const double u = ldexp(1, -facts[t->op.dtype].bits), least = t->op.dtype == HP_F16 ? 0x1p-25 : 0;
    return (2.0 + t->n) * (u * magnitudes / (average ? t->n : 1) * 1.05 + least);
}

static result reals(const collective_test *t, int64_t i) {
    long double sum = 0;
    double least = (double)INFINITY, most = -(double)INFINITY, magnitudes = 0;
    bool nan = false;
    for (int m = 0; m < t->n; m++) {
        const double v = contribution(t, m, i);
        sum += (long double)v;
        magnitudes += fabs(v);
        nan |= isnan(v);
        least = fmin(least, v);
        most = fmax(most, v);
    }
    const double s = (double)sum, results[HP_REDUCTIONS] = {s, least, most, (double)(sum / t->n)};
    const bool adds = t->op.reduction == HP_REDUCE_SUM || t->op.reduction == HP_REDUCE_AVG;
    if (nan) return (result){(double)NAN, 0};
    return (result){results[t->op.reduction], adds ? bound_of(t, magnitudes) : 0};
}

static result reduced(const collective_test *t, int64_t i) {
    return facts[t->op.dtype].whole ? integers(t, i) : reals(t, i);
}

static bool same(double have, const result *want) {
    if (isnan(want->value)) return isnan(have);
    return have == want->value || (isfinite(want->value) && fabs(have - want->value) <= want->bound);
}

/* Compares elements [r.at, r.at + r.n) of a member's data with the whole's, or with one
 * member's contribution. */
static bool run_right(const collective_test *t, run r, int from, int64_t first, const void *data, char *why,
                      size_t n) {
    for (int64_t i = 0; i < r.n; i++) {
        const result want = from < 0 ? reduced(t, first + i) : (result){contribution(t, from, first + i), 0};
        const double have = collective_get((hp_dtype)t->op.dtype, data, r.at + i);
        if (same(have, &want)) continue;
        snprintf(why, n, "element %lld is %.17g, not %.17g (within %.3g)", (long long)(r.at + i), have,
                 want.value, want.bound);
        return false;
    }
    return true;
}

static bool exchange_right(const collective_test *t, int member, const void *data, char *why, size_t n) {
    for (int from = 0; from < t->n; from++)
        if (!run_right(t, got_from(t, from, member), from, sent_to(t, from, member).at, data, why, n))
            return false;
    return true;
}

static bool gathered_right(const collective_test *t, const void *data, char *why, size_t n) {
    for (int from = 0; from < t->n; from++) {
        const run r = part_of(t, from);
        if (!run_right(t, r, from, r.at, data, why, n)) return false;
    }
    return true;
}

bool collective_right(const collective_test *t, int member, const void *data, char *why, size_t n) {
    const run mine = held(t, info(t)->ends, member);
    if (t->op.what == HP_COLLECTIVE_BARRIER) return true;
    if (exchanges(t)) return exchange_right(t, member, data, why, n);
    if (mine.n == 0) return true;
    if (info(t)->adds) return run_right(t, mine, -1, mine.at, data, why, n);
    if (info(t)->begins == HP_BLOCKS_OWN) return gathered_right(t, data, why, n);
    return run_right(t, mine, t->op.root, mine.at, data, why, n);
}

void collective_text(const collective_test *t, char *out, size_t n) {
    static const char *const VALUES[] = {"whole", "real", "special"};
    snprintf(out, n, "%s by %s of back end %d, %lld %s among %d, %d a node, %s, root %d, %s, %s, %s numbers",
             info(t)->name, hp_algorithms[t->op.algorithm]->name, t->op.backend, (long long)t->op.count,
             hp_dtype_names[t->op.dtype], t->n, t->op.per_node, hp_reduction_names[t->op.reduction],
             t->op.root, t->op.part ? "parts" : "equal parts", t->apart ? "out of place" : "in place",
             VALUES[t->values]);
}

/* --- drawing --- */

static hp_collective_case case_of(int what, int n, int root, int per_node) {
    return (hp_collective_case){(hp_collective)what, n, root, per_node};
}

/* Members per node that some algorithm supports: all, one, half. */
static int draw_nodes(group_dice *d, int n) {
    const int few[] = {n, 1, n % 2 ? n : n / 2, n % 3 ? n : n / 3, group_roll(d, 1, n)};
    return few[group_roll(d, 0, 4)];
}

/* Can the algorithm do the collective, with nodes of some size? */
static bool pair_exists(int what, int algorithm, int n, int backend) {
    if (!hp_backend_steps(backend)) return algorithm == HP_ALGORITHM_LIBRARY;
    if (algorithm == HP_ALGORITHM_LIBRARY) return false;
    for (int per_node = 1; per_node <= n; per_node++) {
        const hp_collective_case c = case_of(what, n, 0, per_node);
        if (hp_algorithm_does((hp_algorithm)algorithm, &c, true)) return true;
    }
    return false;
}

int collective_pairs(int n, int backend) {
    int pairs = 0;
    for (int what = 0; what < HP_COLLECTIVES; what++)
        for (int a = 0; a < HP_ALGORITHMS; a++) pairs += pair_exists(what, a, n, backend);
    return pairs;
}

static void draw_pair(collective_test *t, int which) {
    int left = which % collective_pairs(t->n, t->op.backend);
    for (int what = 0; what < HP_COLLECTIVES; what++)
        for (int a = 0; a < HP_ALGORITHMS; a++) {
            if (!pair_exists(what, a, t->n, t->op.backend) || left-- != 0) continue;
            t->op.what = what;
            t->op.algorithm = a;
        }
}

static bool fits(const collective_test *t, bool even) {
    const hp_collective_case c = case_of(t->op.what, t->n, t->op.root, t->op.per_node);
    return !hp_backend_steps(t->op.backend) || hp_algorithm_does((hp_algorithm)t->op.algorithm, &c, even);
}

static void draw_parts(hp_arena *arena, group_dice *d, collective_test *t, int64_t most) {
    const int64_t rows = exchanges(t) ? t->n : 1;
    int64_t *part = HP_NEW(arena, int64_t, rows * t->n + 1);
    for (int64_t i = 0; i < rows * t->n; i++)
        part[i] = group_roll(d, 0, 3) == 0 ? 0 : group_roll(d, 0, (int)(2 * most / t->n + 1));
    t->op.part = part;
    t->op.count = exchanges(t) ? 0 : part_of(t, t->n - 1).at + part[t->n - 1];
    for (int m = 0; m < t->n && exchanges(t); m++) { /* room for outgoing and incoming data */
        const run out = sent_to(t, m, t->n - 1), in = got_from(t, t->n - 1, m);
        if (out.at + out.n > t->op.count) t->op.count = out.at + out.n;
        if (in.at + in.n > t->op.count) t->op.count = in.at + in.n;
    }
}

/* Mostly short; sometimes several slices of every algorithm. */
static int64_t draw_count(group_dice *d, int n, int bytes) {
    const int64_t few[] = {0, 1, 2, 3, n - 1, n, n + 1, 7, 64, 501, 3000, 30001};
    if (group_roll(d, 0, 19) == 0) return (int64_t)group_roll(d, 256 << 10, 700 << 10) / bytes;
    return few[group_roll(d, 0, (int)(sizeof few / sizeof *few) - 1)];
}

static bool lacks(const collective_test *t) {
    return hp_backend_lacks(t->op.backend, (hp_collective)t->op.what, (hp_reduction)t->op.reduction,
                            (hp_dtype)t->op.dtype, !t->apart) != NULL;
}

collective_test collective_draw(hp_arena *arena, group_dice *d, int n, int backend, int which) {
    collective_test t = {.op = {.kind = HP_COMM_COLLECTIVE, .backend = backend}, .n = n};
    draw_pair(&t, which);
    t.op.dtype = which / collective_pairs(n, backend) % HP_DTYPES;
    t.op.reduction = group_roll(d, 0, HP_REDUCTIONS - 1);
    t.op.root = hp_collective_rooted((hp_collective)t.op.what) ? group_roll(d, 0, n - 1) : 0;
    do t.op.per_node = draw_nodes(d, n);
    while (!fits(&t, true));
    t.op.count = draw_count(d, n, hp_dtype_bytes((hp_dtype)t.op.dtype));
    const bool parts = hp_collective_parts((hp_collective)t.op.what) && group_roll(d, 0, 1);
    if (parts && fits(&t, false)) draw_parts(arena, d, &t, t.op.count);
    if (t.op.what == HP_COLLECTIVE_BARRIER) t.op.count = 0;
    t.apart = group_roll(d, 0, 1);
    t.values = group_roll(d, COLLECTIVE_WHOLE, COLLECTIVE_SPECIAL);
    while (lacks(&t)) {
        t.op.reduction = group_roll(d, 0, HP_REDUCTIONS - 1);
        t.apart = group_roll(d, 0, 1);
    }
    t.seed = mixed(d->seed, 0, (int64_t)d->n);
    return t;
}

collective_test collective_draw_sum(group_dice *d, int n) {
    static const int64_t COUNTS[] = {0, 1, 2, 7, 500, 3000, 30000}; /* short and long: every algorithm */
    return (collective_test){.op = {.kind = HP_COMM_COLLECTIVE,
                                    .dtype = group_roll(d, HP_F32, HP_F64),
                                    .count = COUNTS[group_roll(d, 0, 6)]},
                             .n = n,
                             .seed = mixed(d->seed, 0, (int64_t)d->n)};
}
