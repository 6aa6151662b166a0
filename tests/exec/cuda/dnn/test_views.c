/* test_views.c - without a GPU: convolutions that read only part of their map find engines as good as for
 * that part alone. Tiles with a neighbour's rows around them are such convolutions. */
#include "tests/support/dnn/described_dnn.h"

static const int64_t WORKSPACE = 64 << 20;
static hp_dnn *dnn;

static int open_described(void **state) {
    (void)state;
    dnn = described_dnn(false);
    return 0;
}

static int close_described(void **state) {
    (void)state;
    hp_dnn_close(dnn);
    return 0;
}

typedef struct tile {
    const char *name;
    int32_t n, side, ic, oc, k, stride, groups, unread; /* square; unread rows and columns on all sides */
} tile;

static const tile TILES[] = {
    {"shortcut", 4, 58, 256, 512, 1, 2, 1, 1}, {"reduce", 4, 58, 256, 64, 1, 1, 1, 1},
    {"spread", 4, 60, 64, 64, 3, 1, 1, 2},     {"odd", 2, 33, 190, 95, 1, 1, 1, 1},
    {"depthwise", 4, 58, 96, 96, 3, 2, 96, 1}, {"one sample", 1, 260, 64, 64, 3, 1, 1, 1}};

/* Windows lie inside the part that is read. */
static hp_dnn_conv conv_of(const tile *t) {
    const int32_t read = t->side - 2 * t->unread, out = (read - t->k) / t->stride + 1,
                  after = (out - 1) * t->stride + t->k + t->unread - t->side;
    return (hp_dnn_conv){.n = t->n,
                         .ih = t->side,
                         .iw = t->side,
                         .ic = t->ic,
                         .oh = out,
                         .ow = out,
                         .oc = t->oc,
                         .kh = t->k,
                         .kw = t->k,
                         .stride_h = t->stride,
                         .stride_w = t->stride,
                         .dil_h = 1,
                         .dil_w = 1,
                         .groups = t->groups,
                         .pad.top = -t->unread,
                         .pad.left = -t->unread,
                         .pad.bottom = after,
                         .pad.right = after};
}

static int64_t engine_of(hp_dnn_conv c, const char *name) {
    hp_dnn_plan *plan = NULL;
    hp_error err = {0};
    if (hp_dnn_plan_conv(dnn, &c, WORKSPACE, &plan, &err) != HP_OK) fail_msg("%s: %s", name, err.text);
    print_message("%-10s %d %d %d%s: %s\n", name, (int)c.kind, (int)c.dtype, (int)c.math,
                  c.pad.top < 0 ? " part" : "", hp_dnn_plan_name(plan));
    return hp_dnn_plan_engine(plan);
}

/* The same windows over a map with only what they read. */
static hp_dnn_conv whole(hp_dnn_conv c) {
    c.ih += c.pad.top;
    c.iw += c.pad.left;
    c.pad.top = c.pad.left = 0;
    return c;
}

static void parts_of_maps_have_engines_as_maps_have(void **state) {
    (void)state;
    static const struct {
        hp_dtype dtype;
        hp_dnn_math math;
    } precisions[] = {
        {HP_F32, HP_DNN_STRICT}, {HP_F32, HP_DNN_TF32}, {HP_BF16, HP_DNN_STRICT}, {HP_F16, HP_DNN_STRICT}};
    for (size_t i = 0; i < sizeof TILES / sizeof *TILES; i++)
        for (size_t p = 0; p < sizeof precisions / sizeof *precisions; p++)
            for (int kind = HP_DNN_FORWARD; kind <= HP_DNN_WGRAD; kind++) {
                hp_dnn_conv c = conv_of(&TILES[i]);
                c.kind = kind;
                c.dtype = precisions[p].dtype;
                c.math = precisions[p].math;
                if (engine_of(c, TILES[i].name) == 0) assert_int_equal(engine_of(whole(c), TILES[i].name), 0);
            }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(parts_of_maps_have_engines_as_maps_have)};
    return cmocka_run_group_tests(tests, open_described, close_described);
}
