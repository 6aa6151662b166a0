/* test_maps.c - exporters' nodes that move, repeat and normalise maps compute what their definition says.
 * Each model is read, run by the operators' definitions (plain_graph.h), and compared element by element with
 * a formula over the image. */
#include "networks/graph/graph_check.h"
#include "networks/onnx/model.h"
#include "tests/support/onnx/onnx_odd.h"
#include "tests/support/onnx/plain_graph.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { H = 6, W = 8, C = 12 };

/* The image, and what a formula needs of it: (H, W, C). */
static double image[H][W][C];

static void draw_image(void) {
    for (int y = 0; y < H; y++)
        for (int x = 0; x < W; x++)
            for (int c = 0; c < C; c++)
                image[y][x][c] = 2 * hp_rng_uniform(5, 1, (uint64_t)((y * W + x) * C + c)) - 1;
}

static onnx_writer begin(hp_arena *a) {
    const int64_t dim[4] = {1, C, H, W};
    onnx_writer w = onnx_writer_start(a, 13);
    onnx_write_input(&w, "image", 4, dim);
    draw_image();
    return w;
}

static void integers(onnx_writer *w, const char *name, int n, const int64_t *v) {
    onnx_write_integers(w, name, 1, &(int64_t){n}, v);
}

/* --- spellings --- */

/* Reshape to `cut`, Transpose, Reshape to `whole`, applied to "image" or another value. */
static void shuffle(onnx_writer *w, int n, const int64_t *cut, const int64_t *perm, const int64_t whole[4],
                    const char *to) {
    integers(w, "cut", n, cut);
    integers(w, "whole", 4, whole);
    onnx_write_node(w, "Reshape", "image cut", "parts");
    onnx_write_ints(w, onnx_write_node(w, "Transpose", "parts", "turned"), "perm", (size_t)n, perm);
    onnx_write_node(w, "Reshape", "turned whole", to);
}

static void pixel_shuffle(onnx_writer *w) { /* torch.nn.PixelShuffle(2) */
    shuffle(w, 6, (const int64_t[6]){1, 3, 2, 2, H, W}, (const int64_t[6]){0, 1, 4, 2, 5, 3},
            (const int64_t[4]){1, 3, 2 * H, 2 * W}, "y");
}
static double pixel_shuffled(int y, int x, int c) {
    return image[y / 2][x / 2][4 * c + y % 2 * 2 + x % 2];
}

static void depth_to_space(onnx_writer *w) { /* as TensorFlow orders channels */
    shuffle(w, 6, (const int64_t[6]){1, 2, 2, 3, H, W}, (const int64_t[6]){0, 3, 4, 1, 5, 2},
            (const int64_t[4]){1, 3, 2 * H, 2 * W}, "y");
}
static double spread(int y, int x, int c) {
    return image[y / 2][x / 2][(y % 2 * 2 + x % 2) * 3 + c];
}

static void pixel_unshuffle(onnx_writer *w) { /* torch.nn.PixelUnshuffle, blocks of 3 x 2 */
    shuffle(w, 6, (const int64_t[6]){1, C, H / 3, 3, W / 2, 2}, (const int64_t[6]){0, 1, 3, 5, 2, 4},
            (const int64_t[4]){1, 6 * C, H / 3, W / 2}, "y");
}
static double unshuffled(int y, int x, int c) {
    return image[3 * y + c % 6 / 2][2 * x + c % 2][c / 6];
}

/* ShuffleNet: the second half of the shuffled channels. */
static void channel_shuffle(onnx_writer *w) {
    shuffle(w, 5, (const int64_t[5]){1, 3, 4, H, W}, (const int64_t[5]){0, 2, 1, 3, 4},
            (const int64_t[4]){1, C, H, W}, "shuffled");
    onnx_write_int(w, onnx_write_node(w, "Split", "shuffled", "first y"), "axis", 1);
}
static double channel_shuffled(int y, int x, int c) {
    return image[y][x][(c + 6) % 3 * 4 + (c + 6) / 3];
}

/* The same half by Slice, as older exporters write chunk. */
static void shuffle_sliced(onnx_writer *w) {
    shuffle(w, 5, (const int64_t[5]){1, 3, 4, H, W}, (const int64_t[5]){0, 2, 1, 3, 4},
            (const int64_t[4]){1, C, H, W}, "shuffled");
    integers(w, "from", 1, (const int64_t[1]){C / 2});
    integers(w, "to", 1, (const int64_t[1]){C});
    integers(w, "along", 1, (const int64_t[1]){1});
    onnx_write_node(w, "Slice", "shuffled from to along", "y");
}

/* YOLOv5: every other pixel, four times. */
static void focus(onnx_writer *w) {
    integers(w, "end", 2, (const int64_t[2]){INT32_MAX, INT32_MAX});
    integers(w, "axes", 2, (const int64_t[2]){2, 3});
    integers(w, "steps", 2, (const int64_t[2]){2, 2});
    for (int k = 0; k < 4; k++) {
        const char *at = hp_arena_printf(w->arena, "at%d", k);
        integers(w, at, 2, (const int64_t[2]){k % 2, k / 2});
        onnx_write_node(w, "Slice", hp_arena_printf(w->arena, "image %s end axes steps", at),
                        hp_arena_printf(w->arena, "part%d", k));
    }
    onnx_write_int(w, onnx_write_node(w, "Concat", "part0 part1 part2 part3", "y"), "axis", 1);
}
static double focused(int y, int x, int c) {
    const int k = c / C;
    return image[2 * y + k % 2][2 * x + k / 2][c % C];
}

static void reflect(onnx_writer *w) {
    integers(w, "pads", 8, (const int64_t[8]){0, 0, 2, 3, 0, 0, H - 1, 1});
    onnx_write_text(w, onnx_write_node(w, "Pad", "image pads", "y"), "mode", "reflect");
}
static double reflected(int y, int x, int c) {
    const int i = abs(y - 2), j = abs(x - 3); /* then down from the last row */
    return image[i < H ? i : 2 * (H - 1) - i][j < W ? j : 2 * (W - 1) - j][c];
}

static void edge(onnx_writer *w) {
    integers(w, "pads", 8, (const int64_t[8]){0, 0, 2, 0, 0, 0, 9, 3});
    onnx_write_text(w, onnx_write_node(w, "Pad", "image pads", "y"), "mode", "edge");
}
static double edged(int y, int x, int c) {
    const int i = y < 2 ? 0 : y - 2;
    return image[i < H ? i : H - 1][x < W ? x : W - 1][c];
}

/* An attention gate of CBAM: maximum and mean over channels, and one number per pixel times the map. */
static void gates(onnx_writer *w) {
    const int64_t one = 1;
    onnx_write_ints(w, onnx_write_node(w, "ReduceMean", "image", "mean"), "axes", 1, &one);
    onnx_write_ints(w, onnx_write_node(w, "ReduceMax", "image", "most"), "axes", 1, &one);
    onnx_write_node(w, "Mul", "mean image", "gated");
    onnx_write_node(w, "Sub", "gated most", "y");
}
static double gated(int y, int x, int c) {
    double mean = 0, most = -1;
    for (int k = 0; k < C; k++) {
        mean += image[y][x][k] / C;
        most = fmax(most, image[y][x][k]);
    }
    return image[y][x][c] * mean - most;
}

/* A vector for all pixels, added from the left; a map minus it. */
static void vectors(onnx_writer *w) {
    onnx_write_node(w, "GlobalMaxPool", "image", "most");
    onnx_write_node(w, "Add", "most image", "sum");
    onnx_write_node(w, "Sub", "most sum", "y");
}
static double without(int y, int x, int c) {
    return -image[y][x][c];
}

static void arg_max(onnx_writer *w) {
    onnx_write_int(w, onnx_write_node(w, "ArgMax", "image", "y"), "axis", 1);
}
static double arg_max_of(int y, int x, int c) {
    int best = 0;
    for (int k = 1; k < C; k++) best = image[y][x][k] > image[y][x][best] ? k : best;
    return best + c;
}

/* torch.nn.GroupNorm(4, 12) as its exporter writes it. */
static float scale_of(int c) {
    return 0.5f + 0.125f * (float)c;
}
static void group_norm(onnx_writer *w) {
    const int64_t four = 4, dim[3] = {C, 1, 1};
    float scale[C], bias[C];
    for (int c = 0; c < C; c++) {
        scale[c] = scale_of(c);
        bias[c] = (float)c;
    }
    integers(w, "groups", 3, (const int64_t[3]){0, 4, -1});
    onnx_write_floats(w, "ones", 1, &four, (const float[4]){1, 1, 1, 1});
    onnx_write_floats(w, "zeros", 1, &four, (const float[4]){0, 0, 0, 0});
    onnx_write_floats(w, "scale", 3, dim, scale);
    onnx_write_floats(w, "bias", 3, dim, bias);
    onnx_write_node(w, "Shape", "image", "shape");
    onnx_write_node(w, "Reshape", "image groups", "grouped");
    onnx_write_node(w, "InstanceNormalization", "grouped ones zeros", "normed");
    onnx_write_node(w, "Reshape", "normed shape", "map");
    onnx_write_node(w, "Mul", "map scale", "scaled");
    onnx_write_node(w, "Add", "scaled bias", "y");
}
static double group_normed(int y, int x, int c) {
    const int first = c / 3 * 3, n = H * W * 3;
    double mean = 0, square = 0;
    for (int i = 0; i < n; i++) mean += image[i / 3 / W][i / 3 % W][first + i % 3] / n;
    for (int i = 0; i < n; i++) square += pow(image[i / 3 / W][i / 3 % W][first + i % 3] - mean, 2) / n;
    return (image[y][x][c] - mean) / sqrt(square + 1e-5) * (double)scale_of(c) + c;
}

/* --- all --- */

static const struct {
    const char *name;
    void (*write)(onnx_writer *w);
    double (*value)(int y, int x, int c);
    int h, w, c, layers; /* size of the output; layers of the graph, including the image's */
} models[] = {
    {"pixel shuffle", pixel_shuffle, pixel_shuffled, 2 * H, 2 * W, 3, 2},
    {"depth to space", depth_to_space, spread, 2 * H, 2 * W, 3, 2},
    {"pixel unshuffle", pixel_unshuffle, unshuffled, H / 3, W / 2, 6 * C, 15},
    {"channel shuffle", channel_shuffle, channel_shuffled, H, W, 6, 3},
    {"channel shuffle, sliced", shuffle_sliced, channel_shuffled, H, W, 6, 3},
    {"focus", focus, focused, H / 2, W / 2, 4 * C, 10},
    {"reflect", reflect, reflected, 2 * H + 1, W + 4, C, 2},
    {"edge", edge, edged, H + 11, W + 3, C, 2},
    {"gates", gates, gated, H, W, C, 8},
    {"vectors", vectors, without, H, W, C, 7},
    {"arg max", arg_max, arg_max_of, H, W, 1, 2},
    {"group norm", group_norm, group_normed, H, W, C, 2},
};

static void spellings_compute_their_definitions(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
        hp_arena *a = hp_arena_new();
        onnx_writer w = begin(a);
        hp_onnx_model m;
        hp_error err = {0};
        models[i].write(&w);
        onnx_write_output(&w, "y");
        if (odd_parse(&w, 0, 0, &m, &err) != HP_OK) fail_msg("%s: %s", models[i].name, err.text);
        const hp_graph *g = m.graph;
        if (hp_graph_check(g, &err) != HP_OK) fail_msg("%s: %s", models[i].name, err.text);
        const hp_tensor *y = &g->tensor[g->n_tensor - 1];
        if (y->h != models[i].h || y->w != models[i].w || y->c != models[i].c ||
            g->n_layer != models[i].layers)
            fail_msg("%s: %dx%dx%d by %d layers", models[i].name, y->h, y->w, y->c, g->n_layer);
        const float **param = HP_NEW(a, const float *, g->n_param + 1);
        for (int p = 0; p < g->n_param; p++) param[p] = m.param[p].data;
        plain run = {.g = g, .param = param};
        const double *got = plain_run(a, &run, &image[0][0][0]);
        for (int k = 0; k < y->h * y->w * y->c; k++) {
            const double wanted = models[i].value(k / y->c / y->w, k / y->c % y->w, k % y->c);
            if (fabs(got[k] - wanted) > 1e-6 * (1 + fabs(wanted)))
                fail_msg("%s: element %d is %.9g, not %.9g", models[i].name, k, got[k], wanted);
        }
        hp_arena_free(a);
    }
}

/* Errors name the node of what remains. */
static void other_modes_are_refused(void **state) {
    static const char *const modes[] = {"symmetric", "wrap", "odd"};
    (void)state;
    for (int i = 0; i < 4; i++) {
        hp_arena *a = hp_arena_new();
        onnx_writer w = begin(a);
        hp_onnx_model m;
        hp_error err = {0};
        integers(&w, "pads", 8, (const int64_t[8]){0, 0, i < 3 ? 1 : H, 0, 0, 0, 0, 0});
        onnx_write_text(&w, onnx_write_node(&w, "Pad", "image pads", "y"), "mode",
                        i < 3 ? modes[i] : "reflect");
        onnx_write_output(&w, "y");
        assert_int_equal(odd_parse(&w, 0, 0, &m, &err), HP_EDATA);
        assert_non_null(strstr(err.text, i < 3 ? modes[i] : "more pixels than there are, 6"));
        hp_arena_free(a);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(spellings_compute_their_definitions),
                                       cmocka_unit_test(other_modes_are_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
