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

const hp_axis hp_axis_fuse = {.name = "fuse",
                              .example = "fuse=5M",
                              .usual = "25M",
                              .means = "bytes of a gradient bucket",
                              .parse = parse_fuse,
                              .print = print_fuse,
                              .omits = is_default,
                              .reset = reset};
