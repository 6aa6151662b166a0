/* test_calibrate.c - scales calibrated on the fly: equal to those of a small float run, whatever the image
 * size; the first layer's against plain loops over the same pixels. */
#include <math.h>
#include <string.h>

#include "tests/support/exec/source_weights.h"
#include "exec/run/run_calibrate.h"
#include "exec/base/streams.h"
#include "exec/quant/sharing.h"
#include "networks/graph/acts.h"
#include "networks/graph/graph_json.h"
#include "networks/nets/builder.h"
#include "tests/support/plan/data_files.h"
#include "tests/support/exec/thread_comm.h"
#include "tests/support/plan/law_cases.h"

typedef struct calibrated {
    hp_arena *memory;
    hp_plan plan;
    hp_constants *c;
} calibrated;

static calibrated plan_of(const char *net, int h, int w, hp_device_kind device) {
    calibrated r = {.memory = hp_arena_new()};
    hp_error err = {0};
    r.plan = (hp_plan){.image_h = h,
                       .image_w = w,
                       .classes = hp_net_default_classes(net),
                       .mode = HP_MODE_INFER,
                       .dtype = hp_devices[device].dtype,
                       .batch = 1,
                       .seed = 3,
                       .strategy = hp_strategy_default()};
    r.plan.strategy.prec = HP_PREC_INT8;
    snprintf(r.plan.net, sizeof r.plan.net, "%s", net);
    r.plan.device = &hp_devices[device];
    if (hp_plan_graph(r.memory, &r.plan, &r.plan.graph, &err) != HP_OK) fail_msg("%s", err.text);
    return r;
}

static void calibrate_from(calibrated *r, const char *path) {
    hp_error err = {0};
    const hp_constants_options o = {.graph = r->plan.graph, .path = path, .seed = r->plan.seed};
    if (hp_constants_open(&o, &r->c, &err) != HP_OK || hp_calibrate_small(&r->plan, r->c, &err) != HP_OK)
        fail_msg("%s: %s", r->plan.net, err.text);
    assert_true(hp_constants_calibrated(r->c));
}

static calibrated calibrate(const char *net, int h, int w, hp_device_kind device) {
    calibrated r = plan_of(net, h, w, device);
    calibrate_from(&r, NULL);
    return r;
}

static void release(calibrated *r) {
    hp_constants_close(r->c);
    hp_arena_free(r->memory);
}

/* Largest relative difference of scales, and of zero points divided by 255. */
static double difference(const calibrated *a, const calibrated *b) {
    const hp_graph *g = a->plan.graph;
    double most = 0;
    assert_int_equal(g->n_tensor, b->plan.graph->n_tensor);
    for (int t = 0; t < g->n_tensor; t++) {
        if (!hp_tensor_wants_qparam(g, t)) continue;
        const hp_qparam p = hp_constants_qparam(a->c, t), q = hp_constants_qparam(b->c, t);
        most = fmax(most, fabs((double)p.scale / (double)q.scale - 1));
        most = fmax(most, abs(p.zero - q.zero) / 255.0);
    }
    return most;
}

static void size_beyond_the_small_image_changes_nothing(void **state) {
    (void)state;
    const bool all = law_all("images that are large in both directions, and the same once more");
    const int small = all ? 256 : 32, large = all ? 700 : 32;
    calibrated a = calibrate("resnet-v1-8", 256, small, HP_DEVICE_CPU),
               b = calibrate("resnet-v1-8", 2000, large, HP_DEVICE_CPU),
               d = calibrate("resnet-v1-8", 32, 64, HP_DEVICE_CPU);
    assert_true(difference(&a, &b) == 0);
    assert_true(difference(&a, &d) > 0);
    if (all) {
        calibrated c = calibrate("resnet-v1-8", 256, small, HP_DEVICE_CPU);
        assert_true(difference(&a, &c) == 0);
        release(&c);
    }
    release(&a), release(&b), release(&d);
}

/* The same network, as a model read from a file. */
static calibrated calibrate_model(const char *net, int h, int w) {
    calibrated r = plan_of(net, h, w, HP_DEVICE_CPU);
    hp_graph *trained = NULL;
    hp_error err = {0};
    assert_int_equal(hp_net_build(r.memory, net, h, w, r.plan.classes, &trained, &err), HP_OK);
    r.plan.model = hp_graph_json(r.memory, trained);
    calibrate_from(&r, NULL);
    return r;
}

/* Sizes differ by whole strides: 2000 = 208 + 28 * 64, 700 = 252 + 7 * 64. */
static void a_model_is_calibrated_at_a_small_size_too(void **state) {
    (void)state;
    const bool all = law_all("models of images that are large in both directions");
    calibrated a = calibrate_model("resnet-v1-8", 2000, all ? 700 : 60),
               b = calibrate("resnet-v1-8", 208, all ? 252 : 60, HP_DEVICE_CPU);
    assert_true(difference(&a, &b) == 0);
    release(&a), release(&b);
}

/* 1999 rows become 2999: half the size is not a whole number. */
static void a_model_of_one_large_size_is_refused(void **state) {
    (void)state;
    hp_builder b;
    calibrated r = plan_of("cnn", 1999, 1999, HP_DEVICE_CPU);
    hp_graph *g = NULL;
    hp_error err = {0};
    b = hp_builder_start(r.memory, "fixed", 1999, 1999, 64, NULL);
    const hp_window window = {3, 1, 1, 1, true};
    const int x = hp_build_resize(&b, hp_build_conv(&b, 0, "a", 64, window), "r", 2999, 2999, HP_NEAREST, 0);
    hp_build_conv(&b, hp_build_conv(&b, x, "b", 64, window), "c", 64, window);
    assert_int_equal(hp_builder_finish(&b, &g), HP_OK);
    r.plan.model = hp_graph_json(r.memory, g);
    assert_int_equal(hp_plan_graph(r.memory, &r.plan, &r.plan.graph, &err), HP_OK);
    const hp_constants_options o = {.graph = r.plan.graph, .seed = 1};
    assert_int_equal(hp_constants_open(&o, &r.c, &err), HP_OK);
    assert_int_equal(hp_calibrate_small(&r.plan, r.c, &err), HP_EDATA);
    assert_non_null(strstr(err.text, "hplan quantize"));
    release(&r);
}

static void devices_agree_but_for_rounding(void **state) {
    (void)state;
    static const char *const nets[] = {"mobilenetv2", "vit:2,24,3,8", "gpt:2,32,4,16,64"};
    for (int i = 0; i < 3; i++) {
        calibrated a = calibrate(nets[i], 32, 32, HP_DEVICE_CPU),
                   b = calibrate(nets[i], 32, 32, HP_DEVICE_REF);
        assert_true(difference(&a, &b) < 0.005); /* a zero point may round the other way */
        release(&a), release(&b);
    }
}

/* Weights from a file, including a linear layer's that fit only the plan's image size. */
static void weights_of_a_file_are_used(void **state) {
    (void)state;
    calibrated r = plan_of("cnn", 300, 28, HP_DEVICE_CPU);
    source_weights s = source_draw(r.memory, r.plan.graph, HP_F32);
    source_save(scratch_path("w"), &s);
    calibrate_from(&r, scratch_path("w"));
    calibrated drawn = calibrate("cnn", 300, 28, HP_DEVICE_CPU),
               same = calibrate("cnn", 256, 28, HP_DEVICE_CPU);
    assert_true(difference(&drawn, &same) == 0);
    assert_true(difference(&drawn, &r) > 0);
    release(&drawn), release(&same), release(&r);
}

/* Pixel of the first calibration images: bytes of the stream, (x / 255 - 1/2) / (1/2). */
static double pixel(const calibrated *r, int image, int64_t i) {
    const hp_rng4 w = hp_philox(r->plan.seed, HP_STREAM_PIXELS | (uint64_t)image, (uint64_t)i / 16);
    return (w.v[i % 16 / 4] >> 8 * (i % 4) & 255) / 127.5 - 1;
}

static double conv_at(const calibrated *r, const hp_layer *l, const hp_filter *f, int image,
                      const int at[3]) {
    const hp_graph *g = r->plan.graph;
    const hp_tensor *x = &g->tensor[l->in[0]];
    double sum = f->bias ? (double)f->bias[at[2]] : 0;
    for (int c = 0; c < x->c; c++)
        for (int ky = 0; ky < l->window.kh; ky++)
            for (int kx = 0; kx < l->window.kw; kx++) {
                const int iy = at[0] * l->window.stride_h - l->window.pad_h + ky,
                          ix = at[1] * l->window.stride_w - l->window.pad_w + kx;
                if (iy < 0 || ix < 0 || iy >= x->h || ix >= x->w) continue;
                const double w =
                    (double)f->weight[((at[2] * x->c + c) * l->window.kh + ky) * l->window.kw + kx];
                sum += w * pixel(r, image, ((int64_t)iy * x->w + ix) * x->c + c);
            }
    return sum;
}

static void first_layer_has_the_range_of_plain_loops(void **state) {
    (void)state;
    calibrated r = calibrate("resnet-v1-8", 32, 36, HP_DEVICE_CPU);
    const hp_graph *g = r.plan.graph;
    const hp_layer *l = &g->layer[1];
    assert_int_equal(l->op, HP_CONV);
    const hp_tensor *y = &g->tensor[l->out];
    hp_constants *c = NULL;
    hp_filter f;
    const hp_constants_options o = {.graph = g, .seed = r.plan.seed};
    assert_int_equal(hp_constants_open(&o, &c, NULL), HP_OK);
    assert_int_equal(hp_constants_filter(c, 1, 0, y->c, false, &f, NULL), HP_OK);
    double hi = 0;
    for (int image = 0; image < 2; image++)
        for (int i = 0; i < y->h * y->w * y->c; i++) {
            const int at[3] = {i / y->c / y->w, i / y->c % y->w, i % y->c};
            hi = fmax(hi, conv_at(&r, l, &f, image, at));
        }
    const hp_qparam q = hp_constants_qparam(r.c, l->out);
    assert_int_equal(l->act, HP_ACT_RELU);
    assert_int_equal(q.zero, 0);
    assert_true(fabs((double)q.scale * 255 / hi - 1) < 1e-5);
    hp_constants_close(c);
    release(&r);
}

/* --- ranks --- */

typedef struct taker {
    thread_world *world;
    int rank;
    pthread_t thread;
    calibrated *r;
} taker;

static void *take(void *self) {
    taker *t = self;
    hp_comm *comm = thread_comm_new(t->world, t->rank);
    if (hp_qparams_broadcast(t->r->c, comm, NULL) != HP_OK) abort();
    comm->ops->close(comm);
    return NULL;
}

static void all_ranks_have_those_of_the_first(void **state) {
    (void)state;
    enum { RANKS = 3 };
    calibrated a[RANKS], first = calibrate("resnet-v1-8", 32, 32, HP_DEVICE_CPU);
    taker t[RANKS];
    thread_world *world = thread_world_new(RANKS);
    for (int k = 0; k < RANKS; k++) {
        a[k] = calibrate("resnet-v1-8", 32, 32, HP_DEVICE_CPU);
        const hp_graph *g = a[k].plan.graph;
        for (int i = 0; k > 0 && i < g->n_tensor; i++)
            if (hp_tensor_wants_qparam(g, i)) hp_constants_set_qparam(a[k].c, i, (hp_qparam){1, 7});
        t[k] = (taker){.world = world, .rank = k, .r = &a[k]};
        assert_int_equal(pthread_create(&t[k].thread, NULL, take, &t[k]), 0);
    }
    for (int k = 0; k < RANKS; k++) pthread_join(t[k].thread, NULL);
    for (int k = 0; k < RANKS; k++) assert_true(difference(&first, &a[k]) == 0);
    for (int k = 0; k < RANKS; k++) release(&a[k]);
    release(&first);
    thread_world_free(world);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(size_beyond_the_small_image_changes_nothing),
        cmocka_unit_test(a_model_is_calibrated_at_a_small_size_too),
        cmocka_unit_test(a_model_of_one_large_size_is_refused),
        cmocka_unit_test(devices_agree_but_for_rounding),
        cmocka_unit_test_setup_teardown(weights_of_a_file_are_used, scratch_setup, scratch_teardown),
        cmocka_unit_test(first_layer_has_the_range_of_plain_loops),
        cmocka_unit_test(all_ranks_have_those_of_the_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
