/* test_observe.c - observing tensors: ranges and means against plain loops, and the same quantisation
 * whichever rank sees which box. */
#include <math.h>
#include <string.h>

#include "tests/support/exec/source_weights.h"
#include "exec/run/observe.h"
#include "exec/quant/sharing.h"
#include "networks/graph/acts.h"
#include "tests/support/exec/thread_comm.h"
#include "tests/support/plan/law_cases.h"

enum { IMAGES = 2, SIDE = 32 };

/* Element of a tensor: skewed, with different magnitudes per channel, never below 0 after a relu. */
static double element(const hp_graph *g, int tensor, int n, int y, int x, int c) {
    const hp_tensor *t = &g->tensor[tensor];
    const uint64_t at =
        (((uint64_t)n * (uint64_t)t->h + (uint64_t)y) * (uint64_t)t->w + (uint64_t)x) * (uint64_t)t->c +
        (uint64_t)c;
    const double v = hp_rng_normal(9, (uint64_t)tensor, at) * (1 + c % 5) + 0.1 * (c % 3);
    return (double)(float)(g->layer[t->producer].act == HP_ACT_RELU && v < 0 ? 0 : v);
}

/* The tensor's box, dense. */
static void *fill(const hp_graph *g, int tensor, const hp_box *b, hp_dtype dtype) {
    const size_t size = (size_t)hp_dtype_bytes(dtype);
    char *data = malloc((size_t)hp_box_elems(b) * size + 1), *at = data;
    assert_non_null(data);
    for (int n = b->lo[0]; n < b->hi[0]; n++)
        for (int y = b->lo[1]; y < b->hi[1]; y++)
            for (int x = b->lo[2]; x < b->hi[2]; x++)
                for (int c = b->lo[3]; c < b->hi[3]; c++, at += size) {
                    const double v = element(g, tensor, n, y, x, c);
                    if (dtype == HP_F64)
                        *(double *)(void *)at = v;
                    else
                        *(float *)(void *)at = (float)v;
                }
    return data;
}

static void see(hp_observer *o, const hp_graph *g, int tensor, const hp_box *have, const hp_box *count,
                hp_dtype dtype) {
    void *data = fill(g, tensor, have, dtype);
    hp_observe_box(o, tensor, dtype, data, have, count);
    free(data);
}

static hp_observer *observer(const hp_graph *real, const hp_graph *quantised) {
    hp_observer *o = NULL;
    hp_error err = {0};
    if (hp_observer_new(real, quantised, &o, &err) != HP_OK) fail_msg("%s", err.text);
    return o;
}

static hp_constants *open_constants(const hp_graph *g) {
    hp_error err = {0};
    hp_constants *c = NULL;
    const hp_constants_options o = {.graph = g, .seed = 5};
    if (hp_constants_open(&o, &c, &err) != HP_OK) fail_msg("%s", err.text);
    return c;
}

/* Both passes on one rank, whole tensors. */
static hp_observer *watched_whole(const hp_graph *real, const hp_graph *quantised, hp_dtype dtype) {
    hp_observer *o = observer(real, quantised);
    hp_comm *comm = NULL;
    assert_int_equal(hp_comm_self_open(&comm, NULL), HP_OK);
    for (int pass = 0; pass < 2; pass++) {
        for (int t = 0; t < real->n_tensor; t++) {
            const hp_box all = hp_box_whole(real, t, IMAGES);
            see(o, real, t, &all, &all, dtype);
        }
        assert_int_equal(hp_observer_next(o, comm, NULL), HP_OK);
    }
    comm->ops->close(comm);
    return o;
}

static void ranges_are_those_of_plain_loops(void **state) {
    (void)state;
    hp_arena *a = hp_arena_new();
    const hp_graph *q = source_graph(a, "resnet-v1-8", SIDE, HP_PREC_INT8),
                   *r = source_graph(a, "resnet-v1-8", SIDE, 0);
    hp_observer *o = watched_whole(r, q, HP_F32);
    int32_t *of = NULL;
    assert_int_equal(hp_float_counterparts(a, q, r, &of, NULL), HP_OK);
    for (int t = 0; t < q->n_tensor; t++) {
        if (!hp_tensor_wants_qparam(q, t)) continue;
        const hp_tensor *x = &r->tensor[of[t]];
        double lo = INFINITY, hi = -INFINITY, *most = HP_NEW(a, double, x->c);
        for (int n = 0; n < IMAGES; n++)
            for (int i = 0; i < x->h * x->w; i++)
                for (int c = 0; c < x->c; c++) {
                    const double v = element(r, of[t], n, i / x->w, i % x->w, c);
                    lo = fmin(lo, v);
                    hi = fmax(hi, v);
                    most[c] = fmax(most[c], fabs(v));
                }
        const hp_range got = hp_observer_range(o, of[t]);
        assert_true(got.lo == lo && got.hi == hi);
        assert_memory_equal(hp_observer_most(o)[of[t]], most, (size_t)x->c * sizeof *most);
    }
    hp_observer_free(o);
    hp_arena_free(a);
}

/* --- ranks --- */

typedef struct shared_out {
    const hp_graph *real, *quantised;
    uint64_t draw;
    thread_world *world;
} shared_out;

typedef struct share {
    const shared_out *all;
    int rank;
    pthread_t thread;
    hp_observer *o;
} share;

/* A cell of a random grid over the tensor, seen by one random rank, which also holds some
 * of its surroundings. */
static void see_cell(const share *me, int tensor, const hp_box *cell) {
    const hp_graph *g = me->all->real;
    const hp_box all = hp_box_whole(g, tensor, IMAGES);
    hp_box have = *cell;
    for (int axis = 0; axis < HP_AXES; axis++) {
        if (have.lo[axis] > all.lo[axis]) have.lo[axis]--;
        if (have.hi[axis] < all.hi[axis]) have.hi[axis]++;
    }
    see(me->o, g, tensor, &have, cell, HP_F32);
}

static void see_share(const share *me, int tensor) {
    const hp_box all = hp_box_whole(me->all->real, tensor, IMAGES);
    const uint64_t draw = me->all->draw;
    int parts[HP_AXES], cells = 1;
    for (int axis = 0; axis < HP_AXES; axis++) {
        parts[axis] = 1 + (int)hp_rng_below(draw, (uint64_t)tensor, (uint64_t)axis, 3);
        cells *= parts[axis];
    }
    for (int i = 0; i < cells; i++) {
        hp_box cell = all;
        for (int axis = 0, k = i; axis < HP_AXES; k /= parts[axis++]) {
            cell.lo[axis] = hp_split_at(all.hi[axis], parts[axis], k % parts[axis]);
            cell.hi[axis] = hp_split_at(all.hi[axis], parts[axis], k % parts[axis] + 1);
        }
        const uint64_t who =
            hp_rng_below(draw, (uint64_t)tensor, 10 + (uint64_t)i, (uint64_t)me->all->world->size);
        if ((int)who == me->rank && !hp_box_empty(&cell)) see_cell(me, tensor, &cell);
    }
}

static void *watch_share(void *self) {
    share *me = self;
    hp_comm *comm = thread_comm_new(me->all->world, me->rank);
    for (int pass = 0; pass < 2; pass++) {
        for (int t = 0; t < me->all->real->n_tensor; t++) see_share(me, t);
        if (hp_observer_next(me->o, comm, NULL) != HP_OK) abort();
    }
    comm->ops->close(comm);
    return NULL;
}

static void same_choices(const hp_observer *o, const hp_observer *p, const hp_graph *quantised) {
    hp_constants *c = open_constants(quantised), *d = open_constants(quantised);
    for (int kind = 0; kind < HP_OBSERVERS; kind++) {
        const hp_clip_options clip = {kind, 99.9};
        hp_observer_quantise(o, &clip, c);
        hp_observer_quantise(p, &clip, d);
        for (int t = 0; t < quantised->n_tensor; t++) {
            if (!hp_tensor_wants_qparam(quantised, t)) continue;
            const hp_qparam x = hp_constants_qparam(c, t), y = hp_constants_qparam(d, t);
            assert_memory_equal(&x, &y, sizeof x);
        }
    }
    assert_int_equal(hp_observer_correct(o, c, NULL), HP_OK);
    assert_int_equal(hp_observer_correct(p, d, NULL), HP_OK);
    for (int l = 0; l < quantised->n_layer; l++) {
        if (!hp_layer_weights8(quantised, l)) continue;
        const int outs = quantised->tensor[quantised->layer[l].out].c;
        hp_filter f, g;
        assert_int_equal(hp_constants_filter(c, l, 0, outs, true, &f, NULL), HP_OK);
        assert_int_equal(hp_constants_filter(d, l, 0, outs, true, &g, NULL), HP_OK);
        assert_memory_equal(f.bias, g.bias, (size_t)outs * sizeof(float));
    }
    hp_constants_close(c);
    hp_constants_close(d);
}

static void any_partition_gives_the_same_bits(void **state) {
    (void)state;
    hp_arena *a = hp_arena_new();
    const hp_graph *q = source_graph(a, "unet:4", SIDE, HP_PREC_INT8),
                   *r = source_graph(a, "unet:4", SIDE, 0);
    hp_observer *whole = watched_whole(r, q, HP_F64);
    const int most = law_all("five ranks that watch their shares") ? 5 : 3;
    for (int ranks = 1; ranks <= most; ranks += 2) {
        shared_out all = {r, q, (uint64_t)ranks, thread_world_new(ranks)};
        share part[5];
        for (int k = 0; k < ranks; k++) {
            part[k] = (share){.all = &all, .rank = k, .o = observer(r, q)};
            assert_int_equal(pthread_create(&part[k].thread, NULL, watch_share, &part[k]), 0);
        }
        for (int k = 0; k < ranks; k++) pthread_join(part[k].thread, NULL);
        for (int k = 0; k < ranks; k++) {
            same_choices(whole, part[k].o, q);
            hp_observer_free(part[k].o);
        }
        thread_world_free(all.world);
    }
    hp_observer_free(whole);
    hp_arena_free(a);
}

/* --- refusals --- */

static void values_that_are_no_numbers_are_named(void **state) {
    (void)state;
    hp_arena *a = hp_arena_new();
    const hp_graph *q = source_graph(a, "cnn", 28, HP_PREC_INT8), *r = source_graph(a, "cnn", 28, 0);
    hp_comm *comm = NULL;
    assert_int_equal(hp_comm_self_open(&comm, NULL), HP_OK);
    int32_t *of = NULL;
    assert_int_equal(hp_float_counterparts(a, q, r, &of, NULL), HP_OK);
    int bad = 0;
    for (int t = 0; t < q->n_tensor; t++)
        if (hp_tensor_wants_qparam(q, t)) bad = of[t];
    static const float odd[] = {NAN, INFINITY, -INFINITY};
    for (int k = 0; k < 4; k++) { /* last: the layer is never reached */
        hp_observer *o = observer(r, q);
        for (int t = 0; t < r->n_tensor; t++) {
            const hp_box all = hp_box_whole(r, t, 1);
            if (t != bad || k < 3) see(o, r, t, &all, &all, HP_F32);
            const hp_box one = {{0, 0, 0, 0}, {1, 1, 1, 1}};
            if (t == bad && k < 3) hp_observe_box(o, t, HP_F32, &odd[k], &one, &one);
        }
        hp_error err = {0};
        assert_int_equal(hp_observer_next(o, comm, &err), HP_EDATA);
        assert_non_null(strstr(err.text, r->layer[r->tensor[bad].producer].name));
        hp_observer_free(o);
    }
    comm->ops->close(comm);
    hp_arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranges_are_those_of_plain_loops),
        cmocka_unit_test(any_partition_gives_the_same_bits),
        cmocka_unit_test(values_that_are_no_numbers_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
