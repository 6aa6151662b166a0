/* fewer.c - every way to make a replica smaller, sorted by what it loses; replicas for what is left. */
#include "sim/shrink/fewer.h"

#include "plan/strategy/sched_kind.h"

#include <stddef.h>
#include <string.h>

/* Degrees within a replica of which a divisor may stay: slices, channels, branches, ranks that share
 * layers or tokens. */
static const size_t degrees[] = {offsetof(hp_strategy, ldp), offsetof(hp_strategy, cp),
                                 offsetof(hp_strategy, bp), offsetof(hp_strategy, tp),
                                 offsetof(hp_strategy, seq.ranks)};
enum { DEGREES = sizeof degrees / sizeof *degrees };

static int32_t degree_of(const hp_strategy *s, int k) {
    return *(const int32_t *)((const char *)s + degrees[k]);
}

/* What becomes of a replica. */
typedef struct shape {
    int32_t stages, degree[DEGREES];
    int32_t rows, cols; /* of the largest grid; the others in proportion */
    int lost, roles, order;
    int64_t skew; /* how far the grid's shape is from the old one */
} shape;

enum { MOST_SHAPES = 4096 };

/* --- one replica --- */

static int32_t scaled(int32_t n, int32_t of, int32_t most) {
    const int32_t part = (int32_t)((int64_t)n * of / most);
    return part > 1 ? part : 1;
}

static int32_t most(const int32_t *list, int n) {
    int32_t largest = 1;
    for (int i = 0; i < n; i++) largest = list[i] > largest ? list[i] : largest;
    return largest;
}

static bool has_tiles(const hp_strategy *s) {
    return most(s->sp.rows, s->sp.n) > 1 || most(s->sp.cols, s->sp.n) > 1;
}

/* Stages after the spatial ones stay where there are stages to spare. */
static void scale_tiles(const hp_strategy *from, const shape *h, hp_strategy *s) {
    const int after = from->stages > from->sp.n && h->stages > 1;
    if (s->sp.n > h->stages - after) s->sp.n = h->stages - after;
    const int32_t rows = most(from->sp.rows, from->sp.n), cols = most(from->sp.cols, from->sp.n);
    for (int i = 0; i < s->sp.n; i++) {
        s->sp.rows[i] = scaled(s->sp.rows[i], h->rows, rows);
        s->sp.cols[i] = scaled(s->sp.cols[i], h->cols, cols);
    }
    if (h->rows < rows) s->by[HP_AXIS_H].n = 0;
    if (h->cols < cols) s->by[HP_AXIS_W].n = 0;
    if (!has_tiles(s)) s->sp.n = 0;
    if (s->sp.tail == HP_TAIL_SHARED && s->stages != s->sp.n + 1) s->sp.tail = HP_TAIL_OWN;
}

/* Drops what only pipelines have; passes of GEMS become micro-batches. */
static void leave_pipeline(hp_strategy *s) {
    s->chunks = 1;
    s->micro *= s->gems;
    s->gems = 1;
    s->sched = hp_sched_plain(s->micro);
}

static bool is_shape_of(const hp_strategy *s, const shape *h) {
    for (int k = 0; k < DEGREES; k++)
        if (h->degree[k] != degree_of(s, k)) return false;
    return h->stages == s->stages && h->rows == most(s->sp.rows, s->sp.n) &&
           h->cols == most(s->sp.cols, s->sp.n);
}

static hp_strategy shaped(const hp_strategy *from, const shape *h) {
    hp_strategy s = *from;
    if (is_shape_of(from, h)) return s;
    s.stages = h->stages;
    for (int k = 0; k < DEGREES; k++) *(int32_t *)((char *)&s + degrees[k]) = h->degree[k];
    if (s.seq.ranks == 1) s.seq.by = HP_SEQ_RING;
    if (s.sp.n > 0) scale_tiles(from, h, &s);
    if (s.stages != from->stages) s.cut.n = 0;
    if (s.stages == 1 && from->stages > 1) leave_pipeline(&s);
    return s;
}

/* --- all replicas --- */

static bool on_all(const hp_strategy *s) {
    return s->bn == HP_BN_ALL;
}

/* Statistics over all replicas' samples are those of fewer with larger micro-batches. */
static hp_strategy replicated(const hp_strategy *one, int replicas, int dp) {
    hp_strategy s = *one;
    s.dp = dp;
    s.clients = 1;
    if (dp == replicas) return s;
    s.by[HP_AXIS_N].n = 0;
    if (!on_all(&s)) s.micro *= replicas / dp;
    if (s.sched == hp_sched_plain(1)) s.sched = hp_sched_plain(s.micro);
    if (s.sync.servers > dp) s.sync.servers = dp;
    return s;
}

static void place_anew(const hp_strategy *from, hp_strategy *s) {
    if (s->place.how != HP_PLACE_LIST || hp_strategy_devices(from) == hp_strategy_devices(s)) return;
    s->place.how = HP_PLACE_BLOCK;
    s->place.n_seat = 0;
}

/* --- the shapes, in order --- */

static int kinds(const hp_strategy *s) {
    int n = (s->stages > 1) + has_tiles(s) + (s->gems > 1) + (s->chunks > 1);
    for (int k = 0; k < DEGREES; k++) n += degree_of(s, k) > 1;
    return n;
}

static int compare_shapes(const void *a, const void *b) {
    const shape *x = a, *y = b;
    if (x->lost != y->lost) return x->lost < y->lost ? -1 : 1;
    if (x->roles != y->roles) return x->roles > y->roles ? -1 : 1;
    if (x->skew != y->skew) return x->skew < y->skew ? -1 : 1;
    return x->order < y->order ? -1 : 1;
}

static int32_t next_divisor(int32_t n, int32_t d) {
    do d++;
    while (d <= n && n % d);
    return d;
}

/* One replica's devices. */
static int devices_of_one(hp_strategy s) {
    s.dp = s.clients = 1;
    s.by[HP_AXIS_N].n = 0;
    return hp_strategy_devices(&s);
}

typedef struct shape_list {
    const hp_strategy *from;
    int most_devices, n; /* of a replica */
    shape *at;
} shape_list;

static void add_shape(shape_list *l, shape h) {
    const hp_strategy one = shaped(l->from, &h);
    h.roles = devices_of_one(one);
    h.lost = kinds(l->from) - kinds(&one);
    h.order = l->n;
    if (h.roles <= l->most_devices && l->n < MOST_SHAPES) l->at[l->n++] = h;
}

/* This degree and the following, the largest first. */
static void add_degrees(shape_list *l, shape h, int k) {
    if (k == DEGREES) {
        add_shape(l, h);
        return;
    }
    const int32_t had = degree_of(l->from, k);
    for (int32_t by = 1; by <= had; by = next_divisor(had, by)) {
        h.degree[k] = had / by;
        add_degrees(l, h, k + 1);
    }
}

/* Among equals, fewer stages come before fewer tiles, and grids of the same shape before others. */
static void list_shapes(shape_list *l) {
    const hp_strategy *s = l->from;
    const int32_t rows = most(s->sp.rows, s->sp.n), cols = most(s->sp.cols, s->sp.n);
    for (int32_t r = rows; r >= 1; r--)
        for (int32_t c = cols; c >= 1; c--)
            for (int32_t stages = s->stages; stages >= 1; stages--)
                add_degrees(l,
                            (shape){.stages = stages,
                                    .rows = r,
                                    .cols = c,
                                    .skew = llabs((int64_t)r * cols - (int64_t)c * rows)},
                            0);
    qsort(l->at, (size_t)l->n, sizeof *l->at, compare_shapes);
}

/* Without tiles, slices of the samples begin at the first stage: a smaller shape may take more devices than
 * the strategy did, and is left out. */
int hp_strategy_fewer(const hp_strategy *s, int n_devices, hp_strategy *out, int room) {
    const int had = devices_of_one(*s);
    shape_list l = {.from = s,
                    .most_devices = had < n_devices ? had : n_devices,
                    .at = calloc(MOST_SHAPES, sizeof(shape))};
    HP_ASSERT(l.at);
    const int32_t replicas = s->dp * s->clients;
    int n = 0;
    list_shapes(&l);
    for (int i = 0; i < l.n; i++) {
        const hp_strategy one = shaped(s, &l.at[i]);
        for (int32_t by = 1; by <= replicas && n < room; by = next_divisor(replicas, by)) {
            if ((int64_t)(replicas / by) * l.at[i].roles > n_devices) continue;
            out[n] = replicated(&one, replicas, replicas / by);
            place_anew(s, &out[n++]);
        }
    }
    free(l.at);
    return n;
}

/* --- is it the same training? --- */

/* Groups of samples that batch norms see, of a batch. */
static int64_t sample_groups(const hp_strategy *s) {
    return (int64_t)hp_strategy_groups(s) * (on_all(s) ? 1 : hp_strategy_replicas(s));
}

static bool unlike(char why[HP_UNLIKE_TEXT], const char *what) {
    snprintf(why, HP_UNLIKE_TEXT, "%s", what);
    return false;
}

bool hp_trains_alike(const hp_strategy *from, const hp_strategy *to, bool bn, char why[HP_UNLIKE_TEXT]) {
    const bool fewer = from->dp * from->clients != to->dp * to->clients;
    const bool shares = hp_shares(from) != hp_shares(to) && !on_all(from);
    if (from->prec != to->prec) return unlike(why, "its numbers have another precision");
    if (fewer && (from->sync.how == HP_SYNC_LOCAL || to->sync.how == HP_SYNC_LOCAL))
        return unlike(why, "sync=local averages fewer replicas");
    if (bn && from->bn == HP_BN_LOCAL && hp_strategy_roles(from) != hp_strategy_roles(to))
        return unlike(why, "bn=local takes statistics over other parts of the image");
    if (bn && (shares || sample_groups(from) != sample_groups(to)))
        return unlike(why, "batch norms take statistics over other groups of samples");
    for (int t = 0; t < HP_TRAFFICS; t++)
        if (from->compress[t] || to->compress[t]) return unlike(why, "codecs round other messages");
    return true;
}
