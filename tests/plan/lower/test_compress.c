/* test_compress.c - what compress= changes in a program: the bytes of its messages, by their formulas, but
 * not who sends what to whom. */
#include "plan/check/check.h"
#include "plan/codec/codecs.h"
#include "networks/deploy/deploy.h"
#include "plan/lower/lower.h"
#include "tests/support/plan/random_net.h"
#include "tests/support/plan/law_cases.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static int64_t coded(hp_codec codec, int64_t n, int64_t channels) {
    const int64_t rate = codec >> 8;
    if (rate) return ((n / channels + 3) / 4 * ((channels + 3) / 4) * 16 * rate + 63) / 64 * 8;
    return codec == HP_CODEC_INT8 ? n + (n + 255) / 256 * 4 : 2 * n;
}

static const hp_program *lower(hp_arena *arena, const hp_graph *g, const hp_strategy *s) {
    hp_program *p = NULL;
    hp_error err;
    char text[HP_STRATEGY_TEXT];
    const hp_lower_options o = {
        .mode = HP_MODE_TRAIN, .dtype = HP_F32, .batch = hp_strategy_batch(s, 8), .place = true};
    if (hp_lower(arena, g, s, &o, &p, &err) != HP_OK || hp_program_check(p, g, &err) != HP_OK)
        fail_msg("%s: %s", hp_strategy_text(s, text), err.text);
    return p;
}

/* The next task that moves data between ranks. */
static const hp_task *next_move(const hp_role *r, int *at, hp_queue_kind kind) {
    while (*at < r->n_task && hp_task_infos[r->task[*at].op].queue != kind) ++*at;
    return *at < r->n_task ? &r->task[(*at)++] : NULL;
}

static int64_t bytes_of(const hp_task *t) {
    return hp_task_bytes(t);
}

static const hp_queue *queue_of(const hp_role *r, const hp_task *t) {
    return &r->queue[t->queue];
}

static void same_messages(const hp_role *plain, const hp_role *code, const hp_strategy *s) {
    int i = 0, j = 0;
    for (;;) {
        const hp_task *a = next_move(plain, &i, HP_QUEUE_SEND), *b = next_move(code, &j, HP_QUEUE_SEND);
        if (!a || !b) {
            assert_true(!a && !b);
            return;
        }
        const bool within = queue_of(plain, a)->channel & HP_CHANNEL_WITHIN;
        const hp_codec c = (hp_codec)s->compress[within ? HP_TRAFFIC_HALO : HP_TRAFFIC_STAGE];
        const int64_t channels = hp_box_len(&plain->buffer[plain->operand[a->operand]].box, HP_AXIS_C),
                      want = c ? coded(c, a->message.elems, channels) : 4 * a->message.elems;
        assert_int_equal(bytes_of(b), want < 4 * a->message.elems ? want : 4 * a->message.elems);
        assert_int_equal(a->message.position, b->message.position);
        assert_int_equal(queue_of(plain, a)->peer, queue_of(code, b)->peer);
        assert_int_equal(queue_of(plain, a)->channel, queue_of(code, b)->channel);
    }
}

/* Elements of the factors for gradients [from, from + count): those of a matrix, if there are fewer than its
 * elements. */
static void factored(const hp_graph *g, const hp_role *r, int64_t from, int64_t count, int rank, int64_t *p,
                     int64_t *q) {
    *p = *q = 0;
    for (int i = 0; i < g->n_param; i++) {
        const hp_param_place *at = &r->place[i];
        if (!at->here || !hp_param_trained(&g->param[i]) || at->offset < from || at->offset >= from + count)
            continue;
        const int64_t cols = g->param[i].count / g->param[i].dim[0], rows = at->count / cols;
        const bool thin = g->param[i].n_dim > 1 && rank * (rows + cols) < rows * cols;
        *p += thin ? rows * rank : at->count;
        *q += thin ? cols * rank : 0;
    }
}

/* A factored bucket has the sum of its P, and next that of its Q. */
static void same_factors(const hp_role *code, const hp_task *first, int *at, int64_t p, int64_t q) {
    const hp_task *second = next_move(code, at, HP_QUEUE_COLL);
    assert_int_equal(first->op, HP_TASK_ALLREDUCE);
    assert_int_equal(bytes_of(first), 4 * p);
    assert_non_null(second);
    assert_int_equal(second->op, HP_TASK_ALLREDUCE);
    assert_int_equal(bytes_of(second), 4 * q);
}

/* Compares sums of gradients; returns the residuals' bytes. */
static int64_t same_sums(const hp_graph *g, const hp_program *p, const hp_role *plain, const hp_role *code,
                         const hp_strategy *s) {
    const hp_codec c = (hp_codec)s->compress[HP_TRAFFIC_ALLREDUCE];
    int64_t kept = 0;
    for (int i = 0, j = 0;;) {
        const hp_task *a = next_move(plain, &i, HP_QUEUE_COLL), *b = next_move(code, &j, HP_QUEUE_COLL);
        if (!a || !b) {
            assert_true(!a && !b);
            return kept;
        }
        const bool gradients = c && plain->operand[a->operand] == HP_BUF_GRADS;
        int64_t big = 0, thin = 0;
        if (gradients && hp_codec_kind_of(c) == HP_CODEC_POWERSGD)
            factored(g, plain, a->collective.first, a->collective.elems, hp_codec_number(c), &big, &thin);
        if (thin) {
            same_factors(code, b, &j, big, thin);
            kept += 4 * (a->collective.elems + thin);
            continue;
        }
        if (gradients && hp_codec_kind_of(c) == HP_CODEC_POWERSGD) {
            assert_int_equal(bytes_of(b), bytes_of(a));
            continue;
        }
        const bool gathered = gradients && c == HP_CODEC_INT8;
        const int64_t members = gathered ? hp_group_size(p, queue_of(code, b)->peer) : 1;
        assert_int_equal(b->op, gathered ? HP_TASK_ALL_GATHER : a->op);
        assert_int_equal(bytes_of(b), gradients ? members * coded(c, a->collective.elems, 1) : bytes_of(a));
        if (gathered) kept += 4 * a->collective.elems;
    }
}

static void only_bytes_change(void **state) {
    (void)state;
    int shrunk = 0;
    for (uint64_t seed = 1; seed <= law_some(300); seed++) {
        hp_arena *arena = hp_arena_new();
        dice d = {seed, 7100};
        const hp_graph *g = random_net(arena, seed % 40, 5);
        hp_strategy s = random_strategy_of(&d, g, roll(&d, 1, 6), 16, DRAW_ALL - DRAW_ZERO);
        s.fuse_bytes = 1 << roll(&d, 8, 20);
        s.comm[HP_TRAFFIC_ALLREDUCE] = hp_comm_choice(HP_BACKEND_OWN, HP_ALGORITHM_RING);
        const hp_program *plain = lower(arena, g, &s);
        draw_compress(&d, &s);
        const hp_program *code = lower(arena, g, &s);
        for (int r = 0; r < plain->n_role; r++) {
            int64_t kept = 0;
            same_messages(&plain->role[r], &code->role[r], &s);
            const int64_t lost = same_sums(g, plain, &plain->role[r], &code->role[r], &s);
            for (int b = 0; b < code->role[r].n_buffer; b++)
                if (code->role[r].buffer[b].kind == HP_BUF_CARRY) kept += code->role[r].buffer[b].bytes;
            assert_int_equal(kept, lost);
            for (int b = 0; b < code->role[r].n_buffer; b++)
                shrunk += code->role[r].buffer[b].kind == HP_BUF_CODE;
        }
        hp_arena_free(arena);
    }
    assert_true(shrunk > 3 * (int)law_some(300));
}

static hp_reject_code code_of(const char *text, const char *device, bool deployed) {
    hp_arena *arena = hp_arena_new();
    hp_strategy s;
    hp_error err;
    hp_reject why = {.code = HP_FEASIBLE};
    const hp_device_info *on = NULL;
    hp_graph *g = NULL;
    assert_int_equal(hp_net_build(arena, "resnet18", 64, 64, 10, &g, &err), HP_OK);
    assert_int_equal(hp_device_find(device, &on, &err), HP_OK);
    assert_int_equal(hp_strategy_parse(text, &s, &err), HP_OK);
    if (deployed)
        assert_int_equal(
            hp_graph_deploy(arena, hp_graph_fuse(arena, g), &(hp_deploy_options){.prec = s.prec}, &g, &err),
            HP_OK);
    else
        g = hp_graph_train_in(arena, g, s.prec);
    if (hp_strategy_legal(&s, g, 8, 0, &why)) hp_device_allows(on, &s, deployed, &why);
    hp_arena_free(arena);
    return why.code;
}

static void what_cannot_be_compressed_is_refused(void **state) {
    (void)state;
    assert_int_equal(code_of("dp=2,compress=allreduce:int8", "cpu", false), HP_FEASIBLE);
    assert_int_equal(code_of("dp=2,compress=allreduce:int8", "ref", false), HP_FEASIBLE);
    assert_int_equal(code_of("dp=2,compress=allreduce:int8", "cuda", false), HP_REJECT_COMPRESS);
    assert_int_equal(code_of("dp=2,prec=bf16,compress=allreduce:int8", "ref", false), HP_REJECT_COMPRESS);
    assert_int_equal(code_of("dp=2,zero=1,compress=allreduce:int8", "cpu", false), HP_REJECT_COMPRESS);
    assert_int_equal(code_of("dp=2,stages=2,zero=3,compress=stage:int8", "cpu", false), HP_FEASIBLE);
    assert_int_equal(code_of("stages=2,compress=stage:bf16", "cpu", true), HP_REJECT_COMPRESS);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_bytes_change),
        cmocka_unit_test(what_cannot_be_compressed_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
