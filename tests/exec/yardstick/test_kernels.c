/* test_kernels.c - the yardsticks do the work that they claim: multiply-adds by their closed form, reads by
 * the sum of the memory; the same amount in every sample. */
#include "exec/yardstick/yardstick.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const hp_yard_loops *loops_here(int i) {
    return i == 0 ? &hp_yard_loops_base : hp_yard_loops_pick();
}

/* x -> 3/4 x + 1/16, n times from c: 1/4 + (3/4)^n (c - 1/4). */
static void multiply_adds_are_counted(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++)
        for (int64_t n = 0; n < 20; n++) {
            double sum = 0;
            for (int c = 0; c < HP_YARD_CHAINS; c++) sum += 0.25 + pow(0.75, (double)n) * (c - 0.25);
            const float got = loops_here(i)->multiply_add(n);
            assert_true(fabs((double)got - loops_here(i)->lanes * sum) < 1e-4 * (1 + fabs((double)got)));
        }
}

static void every_word_is_read_once(void **state) {
    (void)state;
    enum { BYTES = 64 << 10, WORDS = BYTES / 4 };
    uint32_t *word = aligned_alloc(4096, BYTES);
    assert_non_null(word);
    for (int i = 0; i < 2; i++)
        for (int64_t bytes = 1024; bytes <= BYTES; bytes *= 4) {
            uint32_t sum = 0;
            for (int64_t w = 0; w < WORDS; w++) word[w] = (uint32_t)w * 2654435761u;
            for (int64_t w = 0; w < bytes / 4; w++) sum += word[w];
            assert_int_equal(loops_here(i)->read(word, bytes), sum);
        }
    free(word);
}

static void count_reads(hp_yard_buffers *b, const hp_yard_kernel *k, uint32_t per_pass) {
    for (int p = 0; p < k->passes; p++) {
        if (k->prepare) k->prepare(b);
        const uint32_t before = b->kept;
        k->run(b);
        assert_int_equal(b->kept - before, per_pass);
    }
}

/* All words are 1, so the sum counts words. */
static void kernels_read_the_bytes_they_state(void **state) {
    (void)state;
    hp_yard_buffers b = {.loops = hp_yard_loops_pick(), .far_bytes = HP_YARDSTICK_FAR_BYTES};
    uint32_t *near = aligned_alloc(4096, HP_YARDSTICK_NEAR_BYTES),
             *far = aligned_alloc(4096, HP_YARDSTICK_FAR_BYTES);
    assert_true(near && far);
    for (int i = 0; i < HP_YARDSTICK_NEAR_BYTES / 4; i++) near[i] = 1;
    for (int i = 0; i < HP_YARDSTICK_FAR_BYTES / 4; i++) far[i] = 1;
    b.near = (unsigned char *)near, b.far = (unsigned char *)far;
    for (b.near_bytes = 32 << 10; b.near_bytes <= HP_YARDSTICK_NEAR_BYTES; b.near_bytes *= 2)
        count_reads(&b, &hp_yard_l2, (uint32_t)(hp_yard_l2.work(&b) / 4));
    count_reads(&b, &hp_yard_dram, (uint32_t)(hp_yard_dram.work(&b) / hp_yard_dram.passes / 4));
    free(near);
    free(far);
}

static void samples_are_positive_and_memory_is_planned(void **state) {
    (void)state;
    hp_yardsticks *y = hp_yardsticks_open();
    for (int k = 0; k < HP_YARD_KERNELS; k++) {
        const char *unit = NULL;
        assert_true(hp_yardsticks_time_s(y, (hp_yardstick)k) > 0);
        assert_true(hp_yardsticks_work(y, (hp_yardstick)k, &unit) > 0);
        assert_string_equal(unit, k == HP_YARD_ARITH ? "flops" : "bytes");
    }
    assert_int_equal(hp_yardsticks_bytes(y), HP_YARDSTICK_BYTES); /* x86 and arm can flush */
    hp_yardsticks_close(y);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(multiply_adds_are_counted),
                                       cmocka_unit_test(every_word_is_read_once),
                                       cmocka_unit_test(kernels_read_the_bytes_they_state),
                                       cmocka_unit_test(samples_are_positive_and_memory_is_planned)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
