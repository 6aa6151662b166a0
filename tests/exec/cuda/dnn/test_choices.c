/* test_choices.c - without a GPU: existing plans adopt the engines that another rank chose, if they fit.
 * Ranks that chose differently all end up with the first one's choice. */
#include "tests/support/dnn/described_dnn.h"

static const int64_t ROOMY = 64 << 20, NARROW = 0;

static hp_dnn_plan *plan_of(hp_dnn *dnn, const hp_dnn_conv *c, int64_t workspace) {
    hp_dnn_plan *plan = NULL;
    hp_error err = {0};
    if (hp_dnn_plan_conv(dnn, c, workspace, &plan, &err) != HP_OK) fail_msg("%s", err.text);
    return plan;
}

static void import_choices(hp_dnn *dnn, const char *text) {
    hp_error err = {0};
    if (hp_dnn_choices_import(dnn, text, &err) != HP_OK) fail_msg("%s", err.text);
}

static const char *choice_of(const hp_dnn *dnn, char out[512]) {
    assert_non_null(dnn->engines);
    char *text = json_dumps(dnn->engines->choice, JSON_SORT_KEYS);
    snprintf(out, 512, "%s", text);
    free(text);
    return out;
}

/* An operation whose best engine changes when there is no workspace. */
static hp_dnn_conv differing(hp_dnn *roomy, hp_dnn *narrow) {
    static const int channels[] = {64, 128, 512, 20, 95};
    char a[512], b[512];
    for (int i = 0; i < 15; i++) {
        const hp_dnn_conv c = square_conv((hp_dnn_kind)(i % 3), HP_F32, 8, 28, channels[i / 3]);
        plan_of(roomy, &c, ROOMY);
        plan_of(narrow, &c, NARROW);
        if (strcmp(choice_of(roomy, a), choice_of(narrow, b)) != 0) return c;
    }
    fail_msg("all engines are the same with and without workspace");
    return square_conv(HP_DNN_FORWARD, HP_F32, 8, 28, 1);
}

static void plans_take_over_what_another_chose(void **state) {
    (void)state;
    char should[512], is[512];
    hp_dnn *roomy = described_dnn(false), *narrow = described_dnn(false);
    const hp_dnn_conv c = differing(roomy, narrow);
    hp_dnn_plan *plan = plan_of(roomy, &c, ROOMY);
    char *shared = hp_dnn_choices_export(narrow);
    choice_of(narrow, should);
    assert_non_null(shared);
    import_choices(narrow, shared);
    import_choices(roomy, shared);
    assert_null(hp_dnn_choices_export(narrow));
    assert_null(hp_dnn_choices_export(roomy));
    assert_string_equal(choice_of(roomy, is), should);
    assert_ptr_equal(plan_of(roomy, &c, ROOMY), plan);
    assert_int_equal(hp_dnn_plan_workspace(plan), 0);
    free(shared);
    hp_dnn_close(roomy);
    hp_dnn_close(narrow);
}

/* The first announced choice stays; what does not fit here stays as it was. */
static void what_was_told_first_counts(void **state) {
    (void)state;
    char own[512], now[512];
    hp_dnn *roomy = described_dnn(false), *narrow = described_dnn(false);
    const hp_dnn_conv c = differing(roomy, narrow), other = square_conv(HP_DNN_FORWARD, HP_F32, 8, 28, 32);
    choice_of(narrow, own);
    char *shared = hp_dnn_choices_export(roomy);
    import_choices(narrow, shared);
    plan_of(narrow, &c, NARROW);
    assert_string_equal(choice_of(narrow, now), own);
    assert_null(hp_dnn_choices_export(narrow));
    plan_of(narrow, &other, NARROW);
    char *rest = hp_dnn_choices_export(narrow);
    assert_non_null(strstr(rest, "i28x28x32"));
    assert_null(strstr(rest, "i28x28x64"));
    free(rest);
    free(shared);
    hp_dnn_close(roomy);
    hp_dnn_close(narrow);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(plans_take_over_what_another_chose),
                                       cmocka_unit_test(what_was_told_first_counts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
