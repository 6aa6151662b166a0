/* search_parts.c - walks the layers once per layout and micro-batch size. */
#include "sim/search/search_parts.h"

#include "networks/graph/reads.h"
#include "networks/graph/summands.h"
#include "plan/memory/memory_device.h"
#include "sim/search/live.h"
#include "sim/memory/eager.h"
#include "sim/memory/eager_store.h"
#include "plan/program/work.h"

#include <math.h>

struct hp_parts {
    hp_arena *arena;
    const hp_graph *g;
    hp_cost_cache *cache;
    const hp_device_memory *memory;
    const hp_device_info *device;
    const hp_comm_table *comm;
    hp_dtype dtype;
    hp_mode mode;
    hp_eager_store store;
    int32_t *last_use;   /* per tensor */
    hp_part_sums **sums; /* open addressing, a power of two of slots */
    int n, slots;
};

hp_parts *hp_parts_new(hp_arena *arena, const hp_graph *g, hp_cost_cache *cache, hp_dtype dtype, hp_mode mode,
                       const hp_device_info *device, const hp_comm_table *comm) {
    hp_parts *p = HP_NEW(arena, hp_parts, 1);
    *p = (hp_parts){.arena = arena,
                    .g = g,
                    .cache = cache,
                    .memory = hp_device_memory_of(hp_device_kind_of(device)),
                    .device = device,
                    .comm = comm,
                    .dtype = dtype,
                    .mode = mode,
                    .slots = 256};
    p->store = hp_eager_store_of(arena, g, hp_costs_framework(cache), dtype);
    p->sums = HP_NEW(arena, hp_part_sums *, p->slots);
    p->last_use = HP_NEW(arena, int32_t, g->n_tensor);
    for (int t = 0; t < g->n_tensor; t++) p->last_use[t] = hp_graph_last_use(g, t);
    return p;
}

/* Sums being filled for one layout and micro-batch size: first per unit, summed up at the end. */
typedef struct filler {
    hp_parts *p;
    hp_part_sums *s;
    int part, least;               /* the part that stands for all, and the one that owns least */
    bool *kept, *eager, *gathered; /* per tensor: already counted; eager: in 16 and in 32 bits */
} filler;

static hp_box own(const filler *f, int tensor) {
    return hp_layout_own(&f->s->layout, f->p->g, tensor, f->s->samples, f->part);
}

static int element_bytes(const filler *f, int tensor) {
    return hp_dtype_bytes(hp_tensor_dtype(&f->p->g->tensor[tensor], f->p->dtype));
}

static double own_bytes(const filler *f, int tensor) {
    const hp_box b = own(f, tensor);
    return (double)hp_box_elems(&b) * element_bytes(f, tensor);
}

static double case_seconds(const filler *f, const hp_work_case *c, double *share) {
    return hp_costs_case(f->p->cache, f->p->g, f->p->dtype, c, share).seconds;
}

static double seconds(const filler *f, int layer, hp_task_op op, const hp_box *out) {
    const hp_work_case c = hp_work_case_at(f->p->g, layer, op, out);
    double share;
    return case_seconds(f, &c, &share);
}

/* Adds a task's time to a sum, and the time in which it keeps the device busy. */
static void add_task(const filler *f, int layer, hp_task_op op, const hp_box *out, double *sum) {
    const hp_work_case c = hp_work_case_at(f->p->g, layer, op, out);
    const int unit = f->p->g->layer[layer].unit;
    double share;
    const double s = case_seconds(f, &c, &share);
    sum[unit] += s;
    f->s->busy[unit] += share * s;
}

/* Does the layer read only the image? Then it passes on no gradient, but may still compute those of its
 * parameters. */
static bool reads_image_alone(const filler *f, const hp_layer *l) {
    return l->n_in == 1 && f->p->g->tensor[l->in[0]].producer == 0 && !hp_layer_gradients_along(l);
}

static void add_time(const filler *f, int layer) {
    const hp_graph *g = f->p->g;
    const hp_layer *l = &g->layer[layer];
    const hp_box out = own(f, l->out);
    if (hp_box_empty(&out)) return;
    add_task(f, layer, HP_TASK_FWD, &out, f->s->forward);
    if (f->p->mode != HP_MODE_TRAIN) return;
    if (hp_layer_gradients_apart(l)) add_task(f, layer, HP_TASK_BWDW, &out, f->s->backward);
    if (!reads_image_alone(f, l)) add_task(f, layer, HP_TASK_BWD, &out, f->s->backward);
}

static void add_least(const filler *f, int layer, const hp_box *out) {
    const hp_layer *l = &f->p->g->layer[layer];
    if (hp_box_empty(out)) return;
    f->s->least_forward[l->unit] += seconds(f, layer, HP_TASK_FWD, out);
    if (f->p->mode != HP_MODE_TRAIN) return;
    if (hp_layer_gradients_apart(l)) f->s->least_backward[l->unit] += seconds(f, layer, HP_TASK_BWDW, out);
    if (!reads_image_alone(f, l)) f->s->least_backward[l->unit] += seconds(f, layer, HP_TASK_BWD, out);
}

static bool same_lengths(const hp_box *a, const hp_box *b) {
    for (int axis = 0; axis < HP_AXES; axis++)
        if (hp_box_len(a, axis) != hp_box_len(b, axis)) return false;
    return true;
}

/* If all parts own equally much, the smallest one takes as long. Returns the layer's forward time. */
static double add_times(const filler *f, int layer) {
    const hp_layer *l = &f->p->g->layer[layer];
    const hp_box most = own(f, l->out),
                 least = hp_layout_own(&f->s->layout, f->p->g, l->out, f->s->samples, f->least);
    const double forward = f->s->forward[l->unit], backward = f->s->backward[l->unit];
    add_time(f, layer);
    const double forward_s = f->s->forward[l->unit] - forward;
    if (same_lengths(&most, &least)) {
        f->s->least_forward[l->unit] += forward_s;
        f->s->least_backward[l->unit] += f->s->backward[l->unit] - backward;
    } else {
        add_least(f, layer, &least);
    }
    return forward_s;
}

static void keep_once(const filler *f, bool *counted, double *bytes, int tensor, int unit) {
    if (counted[tensor]) return;
    counted[tensor] = true;
    bytes[unit] += own_bytes(f, tensor);
}

/* Elements of a parameter on this part; the part's own if tensor-parallel ranks split the layer. Channel
 * slices are counted elsewhere. */
static double elements_here(const filler *f, const hp_layer *l, int i) {
    const hp_box out = own(f, l->out);
    if (f->s->layout.tp == 1 || f->p->g->tensor[l->out].tp_unit == 0)
        return (double)f->p->g->param[l->param[i]].count;
    return (double)hp_param_elements(f->p->g, l, i, out.lo[HP_AXIS_C], out.hi[HP_AXIS_C]).count;
}

static void keep_eager(const filler *f, int tensor, int width, int unit) {
    const int seen = width > hp_dtype_bytes(HP_F16); /* a cast is a separate tensor */
    if (f->eager[2 * tensor + seen]) return;
    f->eager[2 * tensor + seen] = true;
    const hp_box b = own(f, tensor);
    f->s->eager_bytes[unit] += (double)hp_box_elems(&b) * width;
}

static void add_eager(const filler *f, int layer) {
    const hp_eager_store *store = &f->p->store;
    const hp_layer *l = &f->p->g->layer[layer];
    const hp_box out = own(f, l->out);
    for (int k = 0; k < l->n_in; k++)
        if (hp_eager_keeps(l, k)) keep_eager(f, l->in[k], hp_eager_width(store, layer, k), l->unit);
    if (hp_eager_keeps_output(l)) keep_eager(f, l->out, store->width[l->out], l->unit);
    f->s->eager_bytes[l->unit] += hp_eager_rules[l->op].extra_bytes * (double)hp_box_elems(&out) +
                                  hp_eager_mask(store, layer, &out) +
                                  hp_eager_scores_of(store, layer, &out).kept +
                                  (hp_eager_activations(f->p->g, layer) - 1) * own_bytes(f, l->out);
}

static void add_memory(const filler *f, int layer) {
    const hp_layer *l = &f->p->g->layer[layer];
    const bool wants_x = hp_layer_backward_reads_x(l);
    const double y = own_bytes(f, l->out), element = element_bytes(f, l->out);
    for (int k = 0; k < l->n_in; k++)
        if ((wants_x && k == 0) || hp_layer_data_reads_x(l, k))
            keep_once(f, f->kept, f->s->kept_bytes, l->in[k], l->unit);
    if (hp_layer_backward_reads_y(l)) keep_once(f, f->kept, f->s->kept_bytes, l->out, l->unit);
    add_eager(f, layer);
    if (l->op == HP_MAXPOOL) f->s->kept_bytes[l->unit] += y / element;
    for (int i = 0; i < l->n_param; i++) {
        const hp_param *param = &f->p->g->param[l->param[i]];
        if (hp_param_trained(param) && param->layer == layer) f->s->params[l->unit] += elements_here(f, l, i);
    }
}

/* --- what a part waits for --- */

static hp_wire wire_of(const filler *f, hp_traffic traffic, hp_backend by) {
    const hp_machine *m = hp_costs_machine(f->p->cache);
    const int32_t kind = (int32_t)hp_device_kind_of(f->p->device);
    return hp_traffic_collective(traffic) ? hp_wire_of_collective(m, kind, (int32_t)by)
                                          : hp_wire_of(m, kind, (int32_t)by);
}

/* Upper bound of the parts on a node; ranks beyond the number of devices share them. */
static int parts_on_a_node(const filler *f, int parts) {
    const hp_machine *m = hp_costs_machine(f->p->cache);
    return parts < m->devices_per_node || parts > hp_machine_devices(m) ? parts : m->devices_per_node;
}

/* The layer continues once the sums of all parts arrive; the parts are on as few nodes as possible. */
static void add_norm_wait(const filler *f, int layer) {
    const hp_layout *l = &f->s->layout;
    const int parts = l->rows * l->cols * l->slices, unit = f->p->g->layer[layer].unit;
    const hp_box out = own(f, f->p->g->layer[layer].out);
    if (f->p->mode != HP_MODE_TRAIN || f->p->g->layer[layer].op != HP_BN || parts == 1) return;
    const double bytes = 2.0 * hp_dtype_bytes(HP_F64) * hp_box_len(&out, HP_AXIS_C);
    const int here = parts_on_a_node(f, parts);
    const hp_comm_chooser chooser = {.clients = 1, .table = f->p->comm, .device = f->p->device};
    const hp_collective_case what = {.what = HP_COLLECTIVE_ALLREDUCE, .size = parts, .per_node = here};
    const hp_comm_way way = hp_comm_way_of(&chooser, HP_TRAFFIC_STATS, &what, true, (int64_t)bytes);
    const hp_collective_call c = {.by = wire_of(f, HP_TRAFFIC_STATS, way.by),
                                  .algorithm = way.algorithm,
                                  .what = what.what,
                                  .ranks = parts,
                                  .per_node = here};
    const hp_cost cost = hp_costs_collective(f->p->cache, &c, (int64_t)bytes);
    f->s->norm_waits[unit] += 2 * cost.seconds;
}

/* The last part needs more than a halo from all others. Data from other nodes arrives through the NICs of its
 * own, or on one node over its device's link, one message after another. */
static void add_gather_wait(const filler *f, int layer) {
    const hp_graph *g = f->p->g;
    const hp_layer *l = &g->layer[layer];
    const hp_machine *m = hp_costs_machine(f->p->cache);
    const int parts = hp_layout_parts(&f->s->layout), here = parts_on_a_node(f, parts);
    const hp_box out = own(f, l->out), has = own(f, l->in[0]);
    if (parts == 1 || hp_layer_has_halo(g, layer) || hp_box_empty(&out)) return;
    const hp_box need = hp_layer_need(g, layer, 0, &out);
    const hp_box both = hp_box_and(&need, &has);
    const double missing = (double)(hp_box_elems(&need) - hp_box_elems(&both)),
                 near = (double)(here - 1) * (double)hp_box_elems(&has), far = missing - near;
    if ((here < parts ? far : missing) <= 0) return;
    const double bytes = (here < parts ? far : missing) * element_bytes(f, l->in[0]);
    const hp_backend by = hp_comm_backend(HP_COMM_AUTO, HP_TRAFFIC_HALO, f->p->device, 1);
    const hp_cost cost =
        hp_costs_p2p(f->p->cache, wire_of(f, HP_TRAFFIC_HALO, by), here == parts, (int64_t)bytes);
    const int ways = here < parts && m->nics_per_node > 1 ? m->nics_per_node : 1;
    f->s->gather_waits[l->unit] += cost.seconds / ways;
}

/* A layer's input beyond a halo arrives in messages, is assembled, and is kept if the weights' gradients read
 * it: once, however many layers read it. */
static void add_gathered(const filler *f, int layer) {
    const hp_graph *g = f->p->g;
    const hp_layer *l = &g->layer[layer];
    const hp_box out = own(f, l->out), has = own(f, l->in[0]);
    if (hp_layout_parts(&f->s->layout) == 1 || hp_layer_has_halo(g, layer) || hp_box_empty(&out)) return;
    const hp_box need = hp_layer_need(g, layer, 0, &out), both = hp_box_and(&need, &has);
    const double size = element_bytes(f, l->in[0]), whole = size * (double)hp_box_elems(&need),
                 missing = whole - size * (double)hp_box_elems(&both);
    if (missing <= 0) return;
    f->s->gathered[l->unit] = fmax(f->s->gathered[l->unit], whole + missing);
    if (!hp_layer_backward_reads_x(l) || f->gathered[l->in[0]]) return;
    f->gathered[l->in[0]] = true;
    f->s->extended_bytes[l->unit] += missing;
}

/* A deployed layer's constants exist once, whatever its boxes; trained weights are packed for each
 * direction. */
static void add_packs(const filler *f, int layer) {
    const hp_graph *g = f->p->g;
    const hp_device_memory *m = f->p->memory;
    const hp_box out = own(f, g->layer[layer].out);
    const int unit = g->layer[layer].unit;
    if (hp_box_empty(&out)) return;
    const hp_box in = hp_layer_need(g, layer, 0, &out);
    const hp_shape shape = hp_shape_between(g, layer, &in, &out);
    if (g->deployed) {
        f->s->constants[unit] += (double)m->infer_pack(g, layer, &shape, f->p->dtype);
        return;
    }
    for (int back = 0; back < (f->p->mode == HP_MODE_TRAIN && !m->shares ? 2 : 1); back++)
        f->s->packs[unit] += (double)m->pack(g, layer, back, &shape, f->p->dtype);
}

/* The middle part has neighbours on all sides, if any part has. */
static int middle_part(const hp_layout *l) {
    return (l->rows / 2 * l->cols + l->cols / 2) * hp_layout_per_tile(l);
}

static void add_halo(const filler *f, int layer, double forward_s) {
    const hp_graph *g = f->p->g;
    const hp_layer *l = &g->layer[layer];
    const int part = middle_part(&f->s->layout), x = l->in[0];
    if (f->s->layout.rows * f->s->layout.cols == 1 || !hp_layer_has_halo(g, layer)) return;
    const hp_box out = hp_layout_own(&f->s->layout, g, l->out, f->s->samples, part),
                 has = hp_layout_own(&f->s->layout, g, x, f->s->samples, part),
                 need = hp_layer_need(g, layer, 0, &out);
    if (hp_box_empty(&has) || hp_box_within(&need, &has)) return;
    const double pixel = (double)hp_box_len(&has, HP_AXIS_N) * g->tensor[x].c * element_bytes(f, x);
    const double rows = hp_box_len(&need, HP_AXIS_H) - hp_box_len(&has, HP_AXIS_H),
                 cols = hp_box_len(&need, HP_AXIS_W) - hp_box_len(&has, HP_AXIS_W);
    const double own_pixels = (double)hp_box_len(&has, HP_AXIS_H) * hp_box_len(&has, HP_AXIS_W);
    const double by_rows = rows > 0 ? rows * hp_box_len(&has, HP_AXIS_W) : 0,
                 by_cols = cols > 0 ? cols * hp_box_len(&need, HP_AXIS_H) : 0;
    f->s->rounds[l->unit] += 1;
    f->s->extended_bytes[l->unit] += (double)hp_box_elems(&need) * element_bytes(f, x);
    f->s->row_bytes[l->unit] += by_rows * pixel;
    f->s->col_bytes[l->unit] += by_cols * pixel;
    f->s->redundant[l->unit] +=
        (by_rows + by_cols) / own_pixels * forward_s * (f->p->mode == HP_MODE_TRAIN ? 3 : 1);
}

/* A tensor enters every unit after its producer's, up to the last one that reads it. */
static void add_entering(const filler *f, int tensor) {
    const hp_graph *g = f->p->g;
    const int last = f->p->last_use[tensor], from = g->layer[g->tensor[tensor].producer].unit;
    if (last >= g->n_layer) return;
    const double bytes = own_bytes(f, tensor);
    for (int u = from + 1; u <= g->layer[last].unit; u++) f->s->entering[u] += bytes;
    if (g->layer[last].unit > from) f->s->fresh[from + 1] += bytes;
}

/* Gradients of a unit's layers that read the same tensor are summed. */
static void add_sums(const filler *f, int tensor) {
    const hp_graph *g = f->p->g;
    const int last = f->p->last_use[tensor], producer = g->tensor[tensor].producer;
    int readers = 0, unit = -1;
    if (f->p->mode != HP_MODE_TRAIN || producer == 0 || last >= g->n_layer) return;
    const double bytes = own_bytes(f, tensor), elems = bytes / element_bytes(f, tensor);
    const hp_work w = hp_work_of_sum(hp_tensor_dtype(&g->tensor[tensor], f->p->dtype), elems);
    const hp_cost cost = hp_costs_work(f->p->cache, &w);
    for (int layer = producer + 1; layer <= last; layer++) {
        const hp_layer *l = &g->layer[layer];
        for (int k = 0; k < l->n_in; k++) {
            if (l->in[k] != tensor) continue;
            readers = l->unit == unit ? readers + 1 : 1;
            unit = l->unit;
            if (readers > 1) f->s->backward[unit] += cost.seconds;
            if (readers > 1) f->s->least_backward[unit] += cost.seconds;
        }
    }
}

static void add_peaks(const filler *f) {
    const hp_live_part part = {&f->s->layout, f->part, f->s->samples, f->p->dtype};
    f->s->peak = HP_NEW(f->p->arena, double, f->p->g->n_unit);
    f->s->whole = HP_NEW(f->p->arena, double, f->p->g->n_unit);
    hp_live_peaks(f->p->g, &part, f->s->peak, f->s->whole);
}

static void sum_up(double *v, int n) {
    double sum = 0;
    for (int u = 0; u <= n; u++) {
        const double here = u < n ? v[u] : 0;
        v[u] = sum;
        sum += here;
    }
}

/* The first or the last of the parts that share a tile; it owns as much as any. */
static int extreme_part(const hp_layout *l, int (*extreme)(const hp_proportions *w, int parts)) {
    const int slice = extreme(&l->by[HP_AXIS_N], l->slices), row = extreme(&l->by[HP_AXIS_H], l->rows),
              col = extreme(&l->by[HP_AXIS_W], l->cols);
    const hp_proportions even = {.n = 0};
    const int tile = (slice * l->rows + row) * l->cols + col, n = hp_layout_per_tile(l);
    return tile * n + extreme(&even, n);
}

static void fill_sums(hp_parts *p, hp_part_sums *s) {
    const hp_graph *g = p->g;
    const int n = g->n_unit;
    double **const sums[] = {&s->forward,        &s->backward,       &s->kept_bytes, &s->eager_bytes,
                             &s->rounds,         &s->row_bytes,      &s->col_bytes,  &s->redundant,
                             &s->extended_bytes, &s->busy,           &s->params,     &s->constants,
                             &s->least_forward,  &s->least_backward, &s->norm_waits, &s->gather_waits,
                             &s->packs,          &s->fresh};
    enum { SUMS = sizeof sums / sizeof sums[0] };
    for (int i = 0; i < SUMS; i++) *sums[i] = HP_NEW(p->arena, double, n + 1);
    s->entering = HP_NEW(p->arena, double, n + 1);
    s->gathered = HP_NEW(p->arena, double, n + 1);
    hp_arena *scratch = hp_arena_new();
    const filler f = {p,
                      s,
                      extreme_part(&s->layout, hp_proportions_heaviest),
                      extreme_part(&s->layout, hp_proportions_lightest),
                      HP_NEW(scratch, bool, g->n_tensor),
                      HP_NEW(scratch, bool, 2 * (size_t)g->n_tensor),
                      HP_NEW(scratch, bool, g->n_tensor)};
    for (int layer = 1; layer < g->n_layer; layer++) {
        const double forward_s = add_times(&f, layer);
        add_norm_wait(&f, layer);
        add_gather_wait(&f, layer);
        add_memory(&f, layer);
        add_gathered(&f, layer);
        add_halo(&f, layer, forward_s);
        add_packs(&f, layer);
    }
    for (int t = 0; t < g->n_tensor; t++) {
        add_entering(&f, t);
        add_sums(&f, t);
    }
    s->scores = own_bytes(&f, g->layer[g->n_layer - 1].out);
    if (p->mode == HP_MODE_INFER) add_peaks(&f);
    for (int i = 0; i < SUMS; i++) sum_up(*sums[i], n);
    hp_arena_free(scratch);
}

static hp_part_sums **slot_of(const hp_parts *p, const hp_layout *l, int64_t samples) {
    for (uint64_t i = hp_layout_hash(l, (uint64_t)samples);; i++) {
        hp_part_sums **s = &p->sums[i & (uint64_t)(p->slots - 1)];
        if (!*s || ((*s)->samples == samples && hp_layout_equal(&(*s)->layout, l))) return s;
    }
}

static void grow(hp_parts *p) {
    hp_part_sums **old = p->sums;
    const int n = p->slots;
    p->slots *= 2;
    p->sums = HP_NEW(p->arena, hp_part_sums *, p->slots);
    for (int i = 0; i < n; i++)
        if (old[i]) *slot_of(p, &old[i]->layout, old[i]->samples) = old[i];
}

const hp_part_sums *hp_parts_of(hp_parts *p, const hp_layout *l, int64_t samples) {
    hp_part_sums **slot = slot_of(p, l, samples);
    if (*slot) return *slot;
    hp_part_sums *s = *slot = HP_NEW(p->arena, hp_part_sums, 1);
    *s = (hp_part_sums){.layout = *l, .samples = samples};
    hp_parts shared = *p;
    if (l->tp > 1) shared.g = hp_graph_with_summands(p->arena, p->g, l->tp);
    fill_sums(&shared, s);
    if (2 * ++p->n > p->slots) grow(p);
    return s;
}
