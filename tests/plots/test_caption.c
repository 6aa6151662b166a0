/* test_caption.c - titles say network, size, batch, precision and machine, and nothing that is not known. */
#include "plots/plots.h"
#include "tests/support/traces/trace_fixture.h"

static hp_plot_candidate all[2];

static void titles_are(const hp_plot_source *s, const char *caption, const char *heading) {
    hp_arena *arena = hp_arena_new();
    assert_string_equal(hp_plot_caption(arena, s), caption);
    assert_string_equal(hp_plot_heading(arena, s, "speed"), heading);
    hp_arena_free(arena);
}

static void a_title_says_what_is_known(void **state) {
    (void)state;
    const hp_trace t = {.strategy = "dp=2,prec=bf16", .ranks = 2, .machine = "m", .device = "cuda"};
    hp_plot_source s = {.net = "unet"};
    titles_are(&s, "unet", "speed: unet");
    s = (hp_plot_source){.net = "unet", .height = 64, .width = 32, .batch = 4, .has_sim = true, .sim = t};
    titles_are(&s, "unet 64x32, batch 4, bf16: dp=2,prec=bf16, 2 ranks on m (cuda)",
               "speed: unet 64x32 on m (cuda)");
    s = (hp_plot_source){.net = "gpt2", .height = 512, .width = 1, .has_exec = true, .exec = t};
    s.exec.strategy = "dp=1";
    s.exec.ranks = 1;
    titles_are(&s, "gpt2 512 tokens, fp32: dp=1, 1 rank on m (cuda)", "speed: gpt2 512 tokens on m (cuda)");
}

/* Of batches, one that all share, or one per device. */
static void a_heading_says_what_all_share(void **state) {
    (void)state;
    const hp_plot_source s = {.net = "unet", .n_candidate = 2, .candidate = all};
    all[0] = (hp_plot_candidate){.strategy = "dp=1", .gpus = 1, .batch = 8};
    all[1] = (hp_plot_candidate){.strategy = "dp=2", .gpus = 2, .batch = 8};
    titles_are(&s, "unet", "speed: unet, batch 8, fp32");
    all[1].batch = 16;
    titles_are(&s, "unet", "speed: unet, batch 8 a device, fp32");
    all[1].batch = 12;
    titles_are(&s, "unet", "speed: unet, fp32");
    all[1].strategy = "dp=2,prec=bf16";
    titles_are(&s, "unet", "speed: unet");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_title_says_what_is_known),
                                       cmocka_unit_test(a_heading_says_what_all_share)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
