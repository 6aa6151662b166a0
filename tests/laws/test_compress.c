/* test_compress.c - training with compressed messages is training in which every message passes through the codec: bit
 * for bit what a communicator computes that rounds plain messages on their way. */
#include "tests/support/exec/law_run.h"
#include "tests/support/exec/rounding_comm.h"

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

/* Sums by one algorithm, whatever their bytes. */
static hp_strategy draw(dice *d, const hp_graph *g) {
    hp_strategy s = random_strategy_of(d, g, roll(d, 1, 4), MAX_RANKS, DRAW_EXACT);
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

static double most; /* of the gradients that ranks bring */

static hp_comm *watched(hp_comm *inner, const hp_memory *memory) {
    (void)memory;
    return rounding_comm_new(hp_comm_own(inner), 0, 0, &most);
}

/* Of the sum of what `ranks` bring, none more than `most`. A cast to m bits is off by 2^-(m+1) of the value, when it is
 * encoded and after every addition; int8 by half of most/127. Float32 itself adds its own roundings. */
static double sum_bound(const char *codec, int ranks) {
    const double brought = ranks * most, own = brought * ranks * 0x1p-23;
    if (strcmp(codec, "int8") == 0) return brought / 254 + own;
    const double half_ulp = strcmp(codec, "bf16") == 0 ? 0x1p-8 : 0x1p-11;
    return brought * pow(1 + half_ulp, ranks) - brought + brought * 0x1p-24 +
           own; /* below 2^-14 fp16 rounds so */
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
