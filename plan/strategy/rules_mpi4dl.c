/* rules_mpi4dl.c - MPI4DL's validity checks on hplan's strategies: verify_spatial_config (train_spatial.py),
 * verify_spatial_master_config (train_spatial_master.py), and the assertions in amoebanet.py; its LP stages
 * keep their shapes from a small image, scaled by a whole number (benchmark_*.py). */
#include "plan/strategy/rules_mpi4dl.h"

#include "plan/strategy/sched_kind.h"

#include <string.h>

/* --- what it does not have --- */

typedef struct only {
    const char *key;
    size_t offset;
    int32_t value; /* the one it has */
    const char *missing, *fix;
} only;

static const only onlys[] = {
    {"chunks", offsetof(hp_strategy, chunks), 1, "interleaved schedules", "chunks=1,sched=gpipe"},
    {"cp", offsetof(hp_strategy, cp), 1, "channel parallelism", "cp=1"},
    {"bp", offsetof(hp_strategy, bp), 1, "branches on ranks of their own", "bp=1"},
    {"share", offsetof(hp_strategy, by[HP_AXIS_N].n), 0, "replicas with unequal shares of the batch",
     "share=even"},
    {"rows", offsetof(hp_strategy, by[HP_AXIS_H].n), 0, "tiles of unequal heights", "rows=even"},
    {"cols", offsetof(hp_strategy, by[HP_AXIS_W].n), 0, "tiles of unequal widths", "cols=even"},
    {"overlap", offsetof(hp_strategy, sp.overlap), HP_OVERLAP_NONE, "computing while a halo is in flight",
     "overlap=none"},
    {"tail", offsetof(hp_strategy, sp.tail), HP_TAIL_OWN, "ranks shared by tiles and tail", "tail=own"},
    {"recompute", offsetof(hp_strategy, recompute), HP_RECOMPUTE_NONE, "recomputation", "recompute=none"},
    {"clients", offsetof(hp_strategy, clients), 1, "several processes per device", "clients=1"},
};

static bool has_everything(const hp_strategy *s, hp_reject *why) {
    for (size_t i = 0; i < sizeof onlys / sizeof onlys[0]; i++) {
        int32_t value;
        memcpy(&value, (const char *)s + onlys[i].offset, sizeof value);
        if (value == onlys[i].value) continue;
        hp_refuse(why, HP_REJECT_MPI4DL, "MPI4DL does not have %s (%s)", onlys[i].missing, onlys[i].key);
        return hp_fix(why, "%s", onlys[i].fix);
    }
    if (s->bn == HP_BN_ALL) {
        hp_refuse(why, HP_REJECT_MPI4DL, "MPI4DL does not have batch norm over data replicas (bn)");
        return hp_fix(why, "bn=local");
    }
    if (!hp_sched_of(s)->warm_up) return true;
    hp_refuse(why, HP_REJECT_MPI4DL,
              "MPI4DL's pipeline runs every forward pass before the first backward pass");
    return hp_fix(why, "sched=gpipe");
}

/* --- tiles --- */

/* MPI4DL's own test, by which 0 is a power of two. */
static bool is_power_of_two(int n) {
    return !(n & (n - 1));
}

/* The last stage computes the loss; one method slices all: square, vertical or horizontal. */
static bool tiles_fit(const hp_strategy *s, hp_reject *why) {
    const int rows = s->sp.rows[0], cols = s->sp.cols[0];
    if (s->sp.n == s->stages) {
        hp_refuse(why, HP_REJECT_MPI4DL, "MPI4DL's last stage cannot be spatial: %d of stages=%d are",
                  s->sp.n, s->stages);
        if (s->sp.n == 1) return hp_fix(why, "stages=2");
        return hp_fix(why, "sp=1x1");
    }
    if (rows != cols && rows > 1 && cols > 1) {
        hp_refuse(why, HP_REJECT_MPI4DL, "MPI4DL slices in squares or strips, not %dx%d", rows, cols);
        return hp_fix(why, "sp=%dx1", rows * cols);
    }
    for (int i = 1; i < s->sp.n; i++) {
        if (s->sp.rows[i] == rows && s->sp.cols[i] == cols) continue;
        hp_refuse(why, HP_REJECT_MPI4DL, "MPI4DL slices all spatial stages alike: %dx%d, then %dx%d", rows,
                  cols, s->sp.rows[i], s->sp.cols[i]);
        return hp_fix(why, "sp=%dx%d", rows, cols);
    }
    return true;
}

/* Number of ranks of one replica: MPI4DL's mp_size. Its check compares that with the tiles of one stage only.
 */
static bool mirror_fits(const hp_strategy *s, const hp_graph *g, hp_reject *why) {
    const int tiles = s->sp.rows[0] * s->sp.cols[0], ranks = hp_strategy_roles(s);
    if (!hp_sched_of(s)->mirrors || ranks >= 2 * tiles) return true;
    const int first = ranks - tiles, last = tiles - 1; /* tiles of a replica and of its mirror image */
    char shared[32];
    snprintf(shared, sizeof shared, first == last ? "rank %d" : "ranks %d-%d", first, last);
    hp_refuse(why, HP_REJECT_MPI4DL,
              "%s of %d would owe halos to both replicas: %d tiles twice need %d ranks", shared, ranks, tiles,
              2 * tiles);
    const int stages = s->sp.n + (tiles + s->ldp - 1) / s->ldp;
    if (stages <= hp_most_stages(g)) return hp_fix(why, "stages=%d", stages);
    return hp_fix(why, "sched=gpipe,gems=1");
}

/* --- images --- */

/* The nearest, the smaller of two. */
static int near_power_of_two(int n) {
    int p = 1;
    while (p <= n / 2) p *= 2;
    return n - p > p / 2 ? 2 * p : p;
}

/* Tiles must have sides that are powers of two, after rounding down. */
static bool sides_fit(const hp_strategy *s, const hp_graph *g, hp_reject *why) {
    const int parts = s->sp.rows[0] > s->sp.cols[0] ? s->sp.rows[0] : s->sp.cols[0], side = g->image_h;
    if (!is_power_of_two(side)) {
        hp_refuse(why, HP_REJECT_MPI4DL, "MPI4DL tiles images whose side is a power of two, not %d", side);
        return hp_fix(why, "--image %d", near_power_of_two(side));
    }
    if (is_power_of_two(side / parts)) return true;
    hp_refuse(why, HP_REJECT_MPI4DL, "MPI4DL's tiles have a side that is a power of two, not %d/%d = %d",
              side, parts, side / parts);
    const int near = near_power_of_two(parts);
    return hp_fix(why, "sp=%dx%d", s->sp.rows[0] > 1 ? near : 1, s->sp.cols[0] > 1 ? near : 1);
}

static bool is_net(const hp_graph *g, const char *family) {
    return strncmp(g->net, family, strlen(family)) == 0;
}

/* Shapes are taken from a small image and multiplied. */
static bool image_fits(const hp_graph *g, hp_reject *why) {
    const int base = is_net(g, "amoebanet") ? 512 : is_net(g, "resnet-v") ? 32 : 1, side = g->image_h;
    if (side == g->image_w && side % base == 0) return true;
    if (side != g->image_w)
        hp_refuse(why, HP_REJECT_MPI4DL, "MPI4DL's images are square, not %dx%d", side, g->image_w);
    else
        hp_refuse(why, HP_REJECT_MPI4DL,
                  "MPI4DL scales %.40s's shapes from %d pixels by a whole number, not to %d", g->net, base,
                  side);
    const int times = (side + base / 2) / base;
    return hp_fix(why, "--image %d", (times ? times : 1) * base);
}

/* --- AmoebaNet --- */

/* MPI4DL counts the cells before the end of the first stage, and takes the three stem cells for granted. */
static bool stem_fits(const hp_strategy *s, const hp_graph *g, hp_reject *why) {
    const int cells = s->cut.n ? s->cut.units[0] : g->n_unit / s->stages;
    if (!is_net(g, "amoebanet") || cells > 3) return true;
    hp_refuse(why, HP_REJECT_MPI4DL, "MPI4DL's first spatial stage has more than 3 cells, not %d", cells);
    if (s->cut.n) return hp_fix(why, "cut=balanced");
    return g->n_unit / 4 > s->sp.n ? hp_fix(why, "stages=%d", g->n_unit / 4) : hp_fix(why, "sp=1x1");
}

bool hp_mpi4dl_allows(const hp_strategy *s, const hp_graph *g, hp_reject *why) {
    const hp_strategy c = hp_strategy_canonical(s);
    if (!has_everything(&c, why)) return false;
    if (c.sp.n && (!tiles_fit(&c, why) || !mirror_fits(&c, g, why))) return false;
    if (!image_fits(g, why)) return false;
    return !c.sp.n || (sides_fit(&c, g, why) && stem_fits(&c, g, why));
}
