/* test_check.c - verdicts on an engine's results (exec/cuda/dnn/dnn_check.h), on a GPU or its stand-in:
 * a plan's results are right; unwritten or half-written ones, or those of another window or other
 * operands, are wrong. */
#include "exec/cuda/dnn/dnn_check.h"
#include "base/rng.h"
#include "networks/graph/acts.h"
#include "tests/support/plan/law_cases.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define CUDA(call) assert_int_equal(call, cudaSuccess)

static int dice(uint64_t round, uint64_t at, int low, int high) {
    return low + (int)hp_rng_below(11, round, at, (uint64_t)(high - low + 1));
}

static hp_dnn_conv draw_conv(uint64_t r) {
    static const hp_dtype TYPES[] = {HP_F32, HP_F32, HP_BF16, HP_F16};
    const int groups = dice(r, 0, 0, 2) ? 1 : dice(r, 1, 2, 3);
    hp_dnn_conv c = {.kind = (int32_t)(r % 3),
                     .dtype = TYPES[dice(r, 2, 0, 3)],
                     .n = dice(r, 3, 1, 3),
                     .ih = dice(r, 4, 8, 16),
                     .iw = dice(r, 5, 8, 16),
                     .ic = groups * dice(r, 6, 1, 24),
                     .oc = groups * 8 * dice(r, 7, 1, 3),
                     .kh = dice(r, 8, 1, 3),
                     .kw = dice(r, 9, 1, 3),
                     .stride_h = dice(r, 10, 1, 2),
                     .stride_w = dice(r, 11, 1, 2),
                     .dil_h = 1,
                     .dil_w = 1,
                     .groups = groups,
                     .add = dice(r, 12, 0, 1)};
    c.pad.top = c.pad.bottom = dice(r, 13, 0, c.kh / 2);
    c.pad.left = c.pad.right = dice(r, 14, 0, c.kw / 2);
    c.oh = (c.ih + c.pad.top + c.pad.bottom - c.kh) / c.stride_h + 1;
    c.ow = (c.iw + c.pad.left + c.pad.right - c.kw) / c.stride_w + 1;
    c.pad.bottom = (c.oh - 1) * c.stride_h + c.kh - c.ih - c.pad.top; /* below 0: unread rows */
    c.pad.right = (c.ow - 1) * c.stride_w + c.kw - c.iw - c.pad.left;
    if (c.kind != HP_DNN_FORWARD) return c;
    c.bias = dice(r, 15, 0, 1);
    c.act = c.bias ? HP_ACT_RELU : HP_ACT_NONE;
    return c;
}

typedef struct bench {
    hp_cuda *cuda;
    hp_dnn *dnn;
    hp_dnn_conv c;
    hp_dnn_data data;
    int64_t n[3]; /* elements of y, x, w */
    int32_t *wrong;
} bench;

enum { WORKSPACE = 64 << 20 };

static void *room(int64_t bytes) {
    void *p = NULL;
    CUDA(cudaMalloc(&p, (size_t)bytes + 1));
    return p;
}

static void draw_operands(const bench *b) {
    const hp_dnn_conv *c = &b->c;
    CUDA(hp_dnn_draw(b->data.y, c->dtype, b->n[0], HP_DNN_DRAW_Y, b->cuda->compute));
    CUDA(hp_dnn_draw(b->data.x, c->dtype, b->n[1], HP_DNN_DRAW_X, b->cuda->compute));
    CUDA(hp_dnn_draw(b->data.w, c->dtype, b->n[2], HP_DNN_DRAW_W, b->cuda->compute));
    CUDA(hp_dnn_draw(b->data.z, c->dtype, b->n[0], HP_DNN_DRAW_Z, b->cuda->compute));
    CUDA(hp_dnn_draw(b->data.bias, HP_F32, c->oc, HP_DNN_DRAW_BIAS, b->cuda->compute));
}

static void open_bench(bench *b, uint64_t round) {
    hp_error err;
    *b = (bench){.c = draw_conv(round)};
    const hp_dnn_conv *c = &b->c;
    if (hp_cuda_open(NULL, &b->cuda, &err) != HP_OK || hp_dnn_open(b->cuda, &b->dnn, &err) != HP_OK)
        fail_msg("%s", err.text);
    b->n[0] = c->n * c->oh * c->ow * c->oc;
    b->n[1] = c->n * c->ih * c->iw * c->ic;
    b->n[2] = (int64_t)c->oc * c->kh * c->kw * (c->ic / c->groups);
    b->data = (hp_dnn_data){room(4 * b->n[1]), room(4 * b->n[2]),        room(4 * b->n[0]),
                            room(4 * b->n[0]), room(4 * (int64_t)c->oc), room(WORKSPACE)};
    b->wrong = room(sizeof *b->wrong);
    draw_operands(b);
}

static void close_bench(bench *b) {
    void *const all[] = {b->data.x,    b->data.w,         b->data.y, b->data.z,
                         b->data.bias, b->data.workspace, b->wrong};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) CUDA(cudaFree(all[i]));
    hp_dnn_close(b->dnn);
    hp_cuda_close(b->cuda);
}

static int32_t wrong_of(const bench *b, const hp_dnn_conv *c) {
    int32_t wrong = 0;
    CUDA(cudaMemsetAsync(b->wrong, 0, sizeof wrong, b->cuda->compute));
    CUDA(hp_dnn_check(c, &b->data, b->wrong, b->cuda->compute));
    CUDA(cudaMemcpyAsync(&wrong, b->wrong, sizeof wrong, cudaMemcpyDeviceToHost, b->cuda->compute));
    CUDA(cudaStreamSynchronize(b->cuda->compute));
    return wrong;
}

static bool run(const bench *b) {
    hp_dnn_plan *plan = NULL;
    hp_error err;
    if (hp_dnn_plan_conv(b->dnn, &b->c, WORKSPACE, &plan, &err) != HP_OK) fail_msg("%s", err.text);
    if (hp_dnn_run(plan, &b->data, &err) != HP_OK) fail_msg("%s", err.text);
    return hp_dnn_plan_fused(plan);
}

static void check_round(uint64_t round) {
    bench b;
    open_bench(&b, round);
    void *const result = ((void *[]){b.data.y, b.data.x, b.data.w})[b.c.kind];
    const size_t bytes = (size_t)(b.n[b.c.kind] * hp_dtype_bytes((hp_dtype)b.c.dtype));
    hp_dnn_conv done = b.c;
    if (!run(&b)) done.bias = done.add = false, done.act = HP_ACT_NONE;
    if (wrong_of(&b, &done)) fail_msg("round %d: right results are called wrong", (int)round);

    hp_dnn_conv other = done;
    other.stride_h = 3 - other.stride_h;
    if (other.kh > 1) assert_true(wrong_of(&b, &other));
    CUDA(cudaMemsetAsync((char *)result + bytes / 2, 0xff, bytes - bytes / 2, b.cuda->compute));
    assert_true(wrong_of(&b, &done));
    CUDA(cudaMemsetAsync(result, 0, bytes, b.cuda->compute));
    assert_true(wrong_of(&b, &done));
    CUDA(hp_dnn_draw(result, b.c.dtype, b.n[b.c.kind], HP_DNN_DRAW_BIAS, b.cuda->compute));
    assert_true(wrong_of(&b, &done));
    close_bench(&b);
}

static void wrong_results_are_seen_and_right_ones_pass(void **state) {
    (void)state;
    for (uint64_t round = 0; round < law_cases(36); round++) check_round(round);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(wrong_results_are_seen_and_right_ones_pass)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
