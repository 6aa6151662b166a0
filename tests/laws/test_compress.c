/* test_compress.c - training with compressed messages equals training in which every message passes through
 * the codec: bit for bit what a communicator computes that rounds plain messages in transit. */
#include "exec/device/codec/code.h"
#include "plan/codec/codecs.h"
#include "plan/strategy/axes/axis_compress.h"
#include "tests/support/exec/law_run.h"

#include <pthread.h>
#include <stdlib.h>

/* --- a communicator that passes values through a codec ---
 *
 * Messages are rounded on arrival if the codec makes them smaller. All-reduces of float32 work on codes:
 * those that can be are added up; otherwise all are gathered, decoded and added, and the loss for a range of
 * memory is added to what is summed there next. */

typedef struct rounding_flight {
    bool used;
    int handle;
    hp_comm_op op;
    int64_t channels; /* channels of a received message */
    void *code;       /* code of a sum */
    void *all;        /* the codes of all members; NULL: they are added up */
} rounding_flight;

/* Residual of the sums over a range. */
typedef struct rounding_residual {
    const void *data;
    float *lost;
} rounding_residual;

typedef struct rounding_comm {
    hp_comm base;
    hp_comm *inner;
    hp_codec messages, sums;
    double *most;
    int n_flight;
    rounding_flight *flight;
    int n_residual;
    rounding_residual *residual;
    const hp_program *program;
    int *received; /* per queue of the role: messages so far */
} rounding_comm;

/* Binds one code; a message has channels. */
static hp_bound bound_of(hp_codec codec, const hp_comm_op *op, int64_t cols, const void *x, void *y) {
    return (hp_bound){.code.codec = codec,
                      .dtype = (hp_dtype)op->dtype,
                      .count = op->count,
                      .code.cols = cols,
                      .code.n = 1,
                      .x = {(void *)(uintptr_t)x},
                      .y = y};
}

static void *encoded(hp_codec codec, const hp_comm_op *op, int64_t cols) {
    void *code = malloc((size_t)hp_codec_bytes(codec, op->count / cols, cols) + 1);
    HP_ASSERT(code);
    const hp_bound b = bound_of(codec, op, cols, op->data, code);
    hp_code_encode(&b);
    return code;
}

static void decode(hp_codec codec, const hp_comm_op *op, int64_t cols, void *code) {
    const hp_bound b = bound_of(codec, op, cols, code, op->data);
    hp_code_decode(&b);
    free(code);
}

static hp_status rounding_join(hp_comm *comm, const hp_program *p, hp_error *err) {
    hp_comm *inner = ((rounding_comm *)comm)->inner;
    rounding_comm *c = (rounding_comm *)comm;
    c->program = p;
    c->received = calloc((size_t)p->role[comm->rank % p->n_role].n_queue, sizeof *c->received);
    HP_ASSERT(c->received);
    return inner->ops->join(inner, p, err);
}

static int rounding_handle(rounding_comm *c) {
    int i = 0;
    while (i < c->n_flight && c->flight[i].used) i++;
    if (i == c->n_flight) {
        c->flight = realloc(c->flight, sizeof *c->flight * (size_t)++c->n_flight);
        HP_ASSERT(c->flight);
    }
    return i;
}

static float *lost_of(rounding_comm *c, const hp_comm_op *op) {
    for (int i = 0; i < c->n_residual; i++)
        if (c->residual[i].data == op->data) return c->residual[i].lost;
    c->residual = realloc(c->residual, sizeof *c->residual * (size_t)(c->n_residual + 1));
    HP_ASSERT(c->residual);
    float *lost = calloc((size_t)op->count + 1, sizeof *lost);
    HP_ASSERT(lost);
    c->residual[c->n_residual++] = (rounding_residual){op->data, lost};
    return lost;
}

/* Encodes gradients plus the residual of earlier ones. */
static void *encoded_with_feedback(rounding_comm *c, const hp_comm_op *op) {
    float *lost = lost_of(c, op), *x = malloc(sizeof *x * (size_t)op->count),
          *back = malloc(sizeof *back * (size_t)op->count);
    HP_ASSERT(x && back);
    for (int64_t i = 0; i < op->count; i++) x[i] = ((const float *)op->data)[i] + lost[i];
    hp_comm_op sum = *op;
    sum.data = x;
    void *code = encoded(c->sums, &sum, 1);
    const hp_bound b = bound_of(c->sums, op, 1, code, back);
    hp_code_decode(&b);
    for (int64_t i = 0; i < op->count; i++) lost[i] = x[i] - back[i];
    free(back);
    free(x);
    return code;
}

/* Gathers all members' codes, in order. */
static void gather(rounding_comm *c, const hp_comm_op *op, rounding_flight *f, hp_comm_op *inside) {
    const int64_t each = hp_codec_bytes(c->sums, op->count, 1), n = hp_group_size(c->program, op->group);
    f->code = encoded_with_feedback(c, op);
    f->all = malloc((size_t)(each * n));
    HP_ASSERT(f->all);
    inside->what = HP_COLLECTIVE_ALL_GATHER;
    inside->data = f->all;
    inside->source = f->code;
    inside->source_bytes = each;
    inside->count = each * n;
}

static void add_all(const rounding_comm *c, const rounding_flight *f) {
    const int64_t each = hp_codec_bytes(c->sums, f->op.count, 1), n = hp_group_size(c->program, f->op.group);
    float *x = malloc(sizeof *x * (size_t)f->op.count);
    double *sum = calloc((size_t)f->op.count, sizeof *sum);
    HP_ASSERT(x && sum);
    for (int64_t k = 0; k < n; k++) {
        const hp_bound b = bound_of(c->sums, &f->op, 1, (unsigned char *)f->all + k * each, x);
        hp_code_decode(&b);
        for (int64_t i = 0; i < f->op.count; i++) sum[i] += (double)x[i];
    }
    for (int64_t i = 0; i < f->op.count; i++) ((float *)f->op.data)[i] = (float)sum[i];
    free(sum);
    free(x);
    free(f->code);
    free(f->all);
}

/* Channels of the next message of a queue: its tasks come in order, step after step. */
static int64_t next_channels(rounding_comm *c, const hp_comm_op *op) {
    const hp_role *r = &c->program->role[c->base.rank % c->program->n_role];
    int q = 1, n = 0;
    while (r->queue[q].kind != HP_QUEUE_RECV || r->queue[q].peer != op->peer % c->program->n_role ||
           r->queue[q].channel != op->tag)
        q++;
    for (int t = 0; t < r->n_task; t++) n += r->task[t].queue == q;
    HP_ASSERT(n > 0);
    int k = c->received[q]++ % n, t = 0;
    while (r->task[t].queue != q || k-- > 0) t++;
    return hp_box_len(&r->buffer[r->operand[r->task[t].operand]].box, HP_AXIS_C);
}

static bool is_sum(const rounding_comm *c, const hp_comm_op *op) {
    return c->sums && op->kind == HP_COMM_COLLECTIVE && op->dtype == HP_F32;
}

static void note_most(const rounding_comm *c, const hp_comm_op *op) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    for (int64_t i = 0; i < op->count; i++)
        *c->most = fmax(*c->most, fabs((double)((const float *)op->data)[i]));
    pthread_mutex_unlock(&lock);
}

static hp_status rounding_start(hp_comm *comm, const hp_comm_op *op, int *handle, hp_error *err) {
    rounding_comm *c = (rounding_comm *)comm;
    *handle = rounding_handle(c);
    rounding_flight *f = &c->flight[*handle];
    *f = (rounding_flight){.used = true, .op = *op};
    hp_comm_op inside = *op;
    if (c->messages && op->kind == HP_COMM_RECV) f->channels = next_channels(c, op);
    if (op->kind == HP_COMM_COLLECTIVE && op->dtype == HP_F32 && c->most) note_most(c, op);
    if (is_sum(c, op)) {
        if (hp_codec_info_of(c->sums)->sum == HP_CODEC_GATHERED)
            gather(c, op, f, &inside);
        else
            inside.data = f->code = encoded(c->sums, op, 1);
        inside.dtype = (int32_t)hp_codec_info_of(c->sums)->dtype;
    }
    return c->inner->ops->start(c->inner, &inside, &f->handle, err);
}

static void finish(const rounding_comm *c, const rounding_flight *f) {
    const hp_comm_op *op = &f->op;
    if (f->all)
        add_all(c, f);
    else if (f->code)
        decode(c->sums, op, 1, f->code);
    if (!c->messages || op->kind != HP_COMM_RECV) return;
    if (hp_codec_bytes(c->messages, op->count / f->channels, f->channels) <
        op->count * hp_dtype_bytes(HP_F32))
        decode(c->messages, op, f->channels, encoded(c->messages, op, f->channels));
}

static hp_status rounding_test(hp_comm *comm, int handle, bool *done, hp_error *err) {
    rounding_comm *c = (rounding_comm *)comm;
    rounding_flight *f = &c->flight[handle];
    HP_TRY(c->inner->ops->test(c->inner, f->handle, done, err));
    if (!*done) return HP_OK;
    finish(c, f);
    f->used = false;
    return HP_OK;
}

static void rounding_close(hp_comm *comm) {
    rounding_comm *c = (rounding_comm *)comm;
    c->inner->ops->close(c->inner);
    for (int i = 0; i < c->n_residual; i++) free(c->residual[i].lost);
    free(c->residual);
    free(c->received);
    free(c->flight);
    free(c);
}

static const hp_comm_ops ROUNDING = {.name = "rounding",
                                     .join = rounding_join,
                                     .start = rounding_start,
                                     .test = rounding_test,
                                     .close = rounding_close};

/* Takes ownership of `inner`. A codec of 0 leaves that kind alone. *most becomes the largest magnitude that a
 * rank contributes to an all-reduce of float32; NULL: not wanted. */
static hp_comm *rounding_comm_new(hp_comm *inner, hp_codec messages, hp_codec sums, double *most) {
    rounding_comm *c = calloc(1, sizeof *c);
    HP_ASSERT(c);
    *c = (rounding_comm){.base = {.ops = &ROUNDING, .rank = inner->rank, .size = inner->size},
                         .inner = inner,
                         .messages = messages,
                         .sums = sums,
                         .most = most};
    return &c->base;
}

/* --- bit for bit --- */

enum { MAX_RANKS = 8 };

static hp_comm *own_comm(hp_comm *inner, const hp_memory *memory) {
    (void)memory;
    return hp_comm_own(inner);
}

#define ROUNDS(name, messages, sums)                                                                         \
    static hp_comm *name(hp_comm *inner, const hp_memory *memory) {                                          \
        (void)memory;                                                                                        \
        return rounding_comm_new(hp_comm_own(inner), messages, sums, NULL);                                  \
    }
ROUNDS(bf16_messages, HP_CODEC_BF16, 0)
ROUNDS(fp16_messages, HP_CODEC_FP16, 0)
ROUNDS(int8_messages, HP_CODEC_INT8, 0)
ROUNDS(zfp_messages, hp_codec_of(HP_CODEC_ZFP, 11), 0)
ROUNDS(bf16_sums, 0, HP_CODEC_BF16)
ROUNDS(fp16_sums, 0, HP_CODEC_FP16)
ROUNDS(int8_sums, 0, HP_CODEC_INT8)
#undef ROUNDS

static const struct {
    const char *compress;
    hp_comm *(*rounds)(hp_comm *inner, const hp_memory *memory);
} rows[] = {{"halo:bf16+stage:bf16", bf16_messages},
            {"halo:fp16+stage:fp16", fp16_messages},
            {"halo:int8+stage:int8", int8_messages},
            {"halo:zfp11+stage:zfp11", zfp_messages},
            {"allreduce:bf16", bf16_sums},
            {"allreduce:fp16", fp16_sums},
            {"allreduce:int8", int8_sums}};
enum { ROWS = sizeof rows / sizeof *rows };

/* Sums by one algorithm, independent of size. */
static hp_strategy draw(dice *d, const hp_graph *g) {
    hp_strategy s = random_strategy_of(d, g, roll(d, 1, 4), MAX_RANKS, DRAW_EXACT - DRAW_ZERO);
    s.comm[HP_TRAFFIC_ALLREDUCE] = s.comm[HP_TRAFFIC_STATS] =
        hp_comm_choice(HP_BACKEND_OWN, HP_ALGORITHM_RING);
    s.fuse_bytes = 1 << roll(d, 8, 20);
    return s;
}

static void a_code_is_what_rounds_a_message(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= law_cases(100); seed++) {
        dice d = {seed, 3000};
        hp_arena *arena = hp_arena_new();
        const hp_graph *g = random_net(arena, seed, roll(&d, 3, 6));
        law_training t = {
            .g = g, .s = draw(&d, g), .ops = &hp_device_cpu, .steps = LAW_STEPS, .lr = 0.05, .seed = seed};
        t.batch = hp_strategy_batch(&t.s, 2 * law_groups(&t.s));
        law_training plain = t;
        const int row = (int)(seed % ROWS);
        assert_int_equal(hp_compress_parse(rows[row].compress, t.s.compress, NULL), HP_OK);
        t.comm = own_comm;
        plain.comm = rows[row].rounds;
        const outcome have = law_run(arena, &t), want = law_run(arena, &plain);
        law_close(&t, &want, &have, 0, 0);
        hp_arena_free(arena);
    }
}

/* --- how far off one step is --- */

static double most; /* largest of the ranks' gradients */

static hp_comm *watched(hp_comm *inner, const hp_memory *memory) {
    (void)memory;
    return rounding_comm_new(hp_comm_own(inner), 0, 0, &most);
}

/* Error bound for the sum of contributions by `ranks`, none larger than `most`. A cast to m bits has an error
 * of 2^-(m+1) of the value, at encoding and after every addition; int8, half of most/127. Float32 itself adds
 * its own roundings. */
static double sum_bound(const char *codec, int ranks) {
    const double brought = ranks * most, own = brought * ranks * 0x1p-23;
    if (strcmp(codec, "int8") == 0) return brought / 254 + own;
    const double half_ulp = strcmp(codec, "bf16") == 0 ? 0x1p-8 : 0x1p-11;
    return brought * pow(1 + half_ulp, ranks) - brought + brought * 0x1p-24 +
           own; /* fp16's rounding below 2^-14 */
}

static void one_step_is_within_the_codecs_bound(void **state) {
    (void)state;
    static const char *const codecs[] = {"bf16", "fp16", "int8"};
    for (uint64_t seed = 1; seed <= law_cases(60); seed++) {
        dice d = {seed, 3100};
        hp_arena *arena = hp_arena_new();
        const hp_graph *g = random_net(arena, seed, roll(&d, 3, 6));
        const char *codec = codecs[seed % 3];
        char compress[32];
        law_training t = {.g = g, .s = draw(&d, g), .ops = &hp_device_cpu, .steps = 1, .lr = 1, .seed = seed};
        t.batch = hp_strategy_batch(&t.s, 2 * law_groups(&t.s));
        law_training plain = t;
        snprintf(compress, sizeof compress, "allreduce:%s", codec);
        assert_int_equal(hp_compress_parse(compress, t.s.compress, NULL), HP_OK);
        most = 0;
        t.comm = own_comm;
        plain.comm = watched;
        const outcome have = law_run(arena, &t), want = law_run(arena, &plain);
        law_close(&t, &want, &have, 0, sum_bound(codec, hp_strategy_ranks(&t.s)));
        hp_arena_free(arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_code_is_what_rounds_a_message),
                                       cmocka_unit_test(one_step_is_within_the_codecs_bound)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
