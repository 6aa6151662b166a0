/* axis_fuse.c - `fuse`: bytes of a bucket of gradients, which are summed together. */
#include "plan/strategy/strategy_axis.h"

#include "base/units.h"

enum { DEFAULT_FUSE = 25000000 };

static hp_status parse_fuse(const hp_axis *a, const char *value, hp_strategy *s, hp_error *err) {
    (void)a;
    HP_TRY(hp_parse_bytes(value, &s->fuse_bytes, err));
    if (s->fuse_bytes < 1) return hp_fail(err, HP_EUSAGE, "strategy: fuse must be at least 1 byte");
    return HP_OK;
}

static void print_fuse(const hp_axis *a, const hp_strategy *s, char *value) {
    (void)a;
    const bool round = s->fuse_bytes % 1000000 == 0;
    snprintf(value, HP_STRATEGY_TEXT, "%lld%s", (long long)(s->fuse_bytes / (round ? 1000000 : 1)),
             round ? "M" : "");
}

static bool is_default(const hp_axis *a, const hp_strategy *s) {
    (void)a;
    return s->fuse_bytes == DEFAULT_FUSE;
}

static void reset(const hp_axis *a, hp_strategy *s) {
    (void)a;
    s->fuse_bytes = DEFAULT_FUSE;
}

/* Bucket sizes to try: from many small sums, which begin early, to one. */
static int tries(const hp_strategy *best, const hp_axis_facts *f, hp_strategy *out) {
    static const int64_t SIZES[] = {1000000, 5000000, 100000000};
    enum { N = sizeof SIZES / sizeof *SIZES };
    if (!f->trains || best->fuse_bytes != DEFAULT_FUSE || hp_strategy_ranks(best) < 2) return 0;
    for (int i = 0; i < N; i++) {
        out[i] = *best;
        out[i].fuse_bytes = SIZES[i];
    }
    return N;
}

const hp_axis hp_axis_fuse = {.name = "fuse",
                              .example = "fuse=5M",
                              .usual = "25M",
                              .means = "bytes of a gradient bucket",
                              .parse = parse_fuse,
                              .print = print_fuse,
                              .omits = is_default,
                              .reset = reset,
                              .tried = HP_TRY_BUCKETS,
                              .tries = tries};
