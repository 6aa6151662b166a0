/* test_strips.c - a convolution or its gradient in pieces, samples or strips of rows, equals the whole: in
 * integers, by the definition. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "exec/cuda/dnn/strips.h"
#include "base/rng.h"

static int32_t padding_after(int32_t in, int32_t out, int32_t k, int32_t stride, int32_t dil,
                             int32_t before) {
    return (out - 1) * stride + (k - 1) * dil + 1 - before - in;
}

typedef struct dice {
    uint64_t seed, at;
} dice;

static int32_t roll(dice *d, int32_t low, int32_t high) {
    return low + (int32_t)hp_rng_below(d->seed, 31, d->at++, (uint64_t)(high - low + 1));
}

/* Draws any convolution; some rows and columns at either end may be unread. */
static hp_dnn_conv draw_conv(dice *d) {
    hp_dnn_conv c = {.kind = roll(d, HP_DNN_FORWARD, HP_DNN_WGRAD), .dtype = HP_F32, .n = roll(d, 1, 5)};
    c.groups = roll(d, 1, 3);
    c.ic = c.groups * roll(d, 1, 2);
    c.oc = c.groups * roll(d, 1, 2);
    c.kh = roll(d, 1, 4), c.kw = roll(d, 1, 3);
    c.stride_h = roll(d, 1, 3), c.stride_w = roll(d, 1, 2);
    c.dil_h = roll(d, 1, 2), c.dil_w = roll(d, 1, 2);
    const int32_t unread = roll(d, 0, 2) ? 0 : 3;
    c.pad.top = roll(d, -unread, (c.kh - 1) * c.dil_h), c.pad.left = roll(d, -unread, (c.kw - 1) * c.dil_w);
    c.ih = roll(d, 24, 40), c.iw = roll(d, 7, 9);
    c.oh = (c.ih + c.pad.top + roll(d, 0, (c.kh - 1) * c.dil_h) - (c.kh - 1) * c.dil_h - 1) / c.stride_h + 1;
    c.ow = (c.iw + c.pad.left - (c.kw - 1) * c.dil_w - 1) / c.stride_w + 1;
    if (unread) c.oh -= roll(d, 0, 2);
    if (unread && c.ow > 1) c.ow -= roll(d, 0, 1);
    c.pad.bottom = padding_after(c.ih, c.oh, c.kh, c.stride_h, c.dil_h, c.pad.top);
    c.pad.right = padding_after(c.iw, c.ow, c.kw, c.stride_w, c.dil_w, c.pad.left);
    c.add = c.kind != HP_DNN_FORWARD && roll(d, 0, 1);
    return c;
}

typedef struct maps {
    int64_t x[5 * 40 * 9 * 6], w[6 * 2 * 12], y[5 * 50 * 9 * 6];
} maps;

static void product(int kind, int64_t *x, int64_t *w, int64_t *y) {
    if (kind == HP_DNN_FORWARD) *y += *x * *w;
    if (kind == HP_DNN_DGRAD) *x += *w * *y;
    if (kind == HP_DNN_WGRAD) *w += *x * *y;
}

/* Adds the products for output o, counted over all pixels and channels, with the kernel at its position. */
static void at_output(const hp_dnn_conv *c, int64_t o, int64_t *x, int64_t *w, int64_t *y) {
    const int32_t k = (int32_t)(o % c->oc), ox = (int32_t)(o / c->oc % c->ow),
                  oy = (int32_t)(o / c->oc / c->ow % c->oh);
    const int64_t n = o / c->oc / c->ow / c->oh;
    const int32_t ins = c->ic / c->groups, first = k / (c->oc / c->groups) * ins;
    for (int32_t tap = 0; tap < c->kh * c->kw * ins; tap++) {
        const int32_t ch = tap % ins, s = tap / ins % c->kw, r = tap / ins / c->kw;
        const int32_t iy = oy * c->stride_h - c->pad.top + r * c->dil_h,
                      ix = ox * c->stride_w - c->pad.left + s * c->dil_w;
        if (iy < 0 || iy >= c->ih || ix < 0 || ix >= c->iw) continue;
        product(c->kind, &x[n * hp_dnn_x_sample(c) + iy * hp_dnn_x_row(c) + ix * c->ic + first + ch],
                &w[k * c->kh * c->kw * ins + tap], &y[o]);
    }
}

/* Zeros the result. */
static void clear(const hp_dnn_conv *c, int64_t *x, int64_t *w, int64_t *y) {
    const int64_t filter = (int64_t)c->oc * (c->ic / c->groups) * c->kh * c->kw;
    if (c->kind == HP_DNN_FORWARD) memset(y, 0, sizeof *y * (size_t)(c->n * c->oh * c->ow * c->oc));
    if (c->kind == HP_DNN_WGRAD) memset(w, 0, sizeof *w * (size_t)filter);
    for (int64_t r = 0; r < c->n * c->ih && c->kind == HP_DNN_DGRAD; r++)
        memset(&x[r / c->ih * hp_dnn_x_sample(c) + r % c->ih * hp_dnn_x_row(c)], 0,
               sizeof *x * (size_t)(c->iw * c->ic));
}

/* The definition, in integers. */
static void compute(const hp_dnn_conv *c, int64_t *x, int64_t *w, int64_t *y) {
    if (!c->add) clear(c, x, w, y);
    for (int64_t o = 0; o < c->n * c->oh * c->ow * c->oc; o++) at_output(c, o, x, w, y);
}

static void fill(maps *m, dice *d) {
    int64_t *const all = (int64_t *)m;
    for (size_t i = 0; i < sizeof *m / sizeof *all; i++) all[i] = roll(d, -9, 9);
}

/* Checks that cuDNN accepts the piece: no negative padding, an output of the size that it computes, addresses
 * as aligned as it claims. */
static void check_piece(const hp_dnn_piece *p, int64_t limit) {
    const hp_dnn_conv *c = &p->conv;
    assert_true(c->pad.top >= 0 && c->pad.left >= 0 && c->pad.bottom >= 0 && c->pad.right >= 0);
    assert_int_equal((c->ih + c->pad.top + c->pad.bottom - (c->kh - 1) * c->dil_h - 1) / c->stride_h + 1,
                     c->oh);
    assert_true(c->n * c->ih * c->iw * c->ic <= limit && c->n * c->oh * c->ow * c->oc <= limit);
    assert_int_equal(4 * p->x_at % c->alignment, 0);
    assert_int_equal(4 * p->y_at % c->alignment, 0);
}

static void an_operation_in_pieces_is_the_operation(void **state) {
    (void)state;
    static maps whole, cut;
    int most = 0;
    for (uint64_t seed = 1; seed <= 600; seed++) {
        dice d = {seed, 0};
        const hp_dnn_conv c = draw_conv(&d);
        const int64_t row = (int64_t)c.iw * (c.ic > c.oc ? c.ic : c.oc), limit = row * roll(&d, 13, 130);
        hp_dnn_piece *piece = NULL;
        hp_error err = {0};
        int n = 0;
        fill(&whole, &d);
        cut = whole;
        if (hp_dnn_split(&c, limit, &piece, &n, &err) != HP_OK) fail_msg("seed %d: %s", (int)seed, err.text);
        compute(&c, whole.x, whole.w, whole.y);
        if (hp_dnn_leaves(&c)) clear(&c, cut.x, cut.w, cut.y);
        for (int i = 0; i < n; i++) {
            check_piece(&piece[i], limit);
            compute(&piece[i].conv, cut.x + piece[i].x_at, cut.w, cut.y + piece[i].y_at);
        }
        free(piece);
        if (memcmp(&whole, &cut, sizeof whole) != 0) fail_msg("seed %d: %d pieces differ", (int)seed, n);
        if (n > most) most = n;
    }
    assert_true(most > 8);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(an_operation_in_pieces_is_the_operation)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
