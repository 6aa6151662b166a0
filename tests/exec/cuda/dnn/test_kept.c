/* test_kept.c - without a GPU: what the user's cache keeps of cuDNN between runs, choices of engines and
 * plans, is exactly what was put there or nothing, whatever happened to its files. */
#include "base/hash.h"
#include "base/rng.h"
#include "networks/graph/acts.h"
#include "tests/support/dnn/described_dnn.h"

#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/hplan-cache-XXXXXX";

static int new_cache(void **state) {
    (void)state;
    return !mkdtemp(folder) || setenv("XDG_CACHE_HOME", folder, 1);
}

static int end_cache(void **state) {
    char command[64];
    (void)state;
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command);
}

static hp_dnn_conv gradient_of(int channels) {
    hp_dnn_conv c = square_conv(HP_DNN_WGRAD, HP_BF16, 8, 28, channels);
    c.alignment = 16;
    return c;
}

static hp_dnn_engine *engine_of(hp_dnn *dnn, int channels) {
    const hp_dnn_conv c = gradient_of(channels);
    hp_dnn_engine *e = NULL;
    hp_error err = {0};
    if (hp_dnn_engine_find(dnn, &c, 64 << 20, &e, &err) != HP_OK) fail_msg("%s", err.text);
    return e;
}

/* --- choices --- */

static hp_dnn *open_with_cache(void) {
    hp_dnn *dnn = described_dnn(false);
    hp_dnn_cache_read(dnn);
    return dnn;
}

static json_t *kept(void) {
    hp_dnn *dnn = open_with_cache();
    json_t *all = json_deep_copy(dnn->choices);
    hp_dnn_close(dnn);
    return all;
}

static void assert_kept(const json_t *should) {
    json_t *is = kept();
    assert_true(json_equal(is, should));
    json_decref(is);
}

static void choose(hp_dnn *dnn, const char *key, int engine) {
    json_object_set_new(dnn->choices, key, json_pack("{s:i, s:{}}", "engine", engine, "knobs"));
}

/* When two write in turns, the file keeps the first one's choice. Each keeps its own in memory and adopts
 * what it has not chosen. */
static void writers_lose_nothing_of_each_other(void **state) {
    (void)state;
    hp_dnn *a = open_with_cache(), *b = open_with_cache();
    choose(a, "both", 1);
    choose(a, "of a", 2);
    hp_dnn_cache_write(a);
    choose(b, "both", 3);
    choose(b, "of b", 4);
    hp_dnn_cache_write(b);
    json_t *should = json_deep_copy(a->choices);
    json_object_set(should, "of b", json_object_get(b->choices, "of b"));
    assert_kept(should);
    assert_int_equal(json_integer_value(json_object_get(json_object_get(b->choices, "both"), "engine")), 3);
    assert_non_null(json_object_get(b->choices, "of a"));
    json_decref(should);
    hp_dnn_close(a);
    hp_dnn_close(b);
}

static void spoil(const char *path, const char *text) {
    FILE *f = fopen(path, "we");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

/* A damaged file is not an error; it is rewritten. */
static void choices_are_kept_from_run_to_run(void **state) {
    (void)state;
    char path[HP_DNN_PATH];
    hp_dnn *dnn = open_with_cache();
    json_t *none = json_object();
    engine_of(dnn, 64);
    hp_dnn_cache_write(dnn);
    assert_kept(dnn->choices);
    hp_dnn_cache_path(dnn, ".json", path, sizeof path);
    spoil(path, "x");
    assert_kept(none);
    hp_dnn_cache_write(dnn);
    assert_kept(dnn->choices);
    json_decref(none);
    hp_dnn_close(dnn);
}

/* --- plans --- */

/* An engine with the same key and choice, as another process has it before it has a plan. */
static hp_dnn_engine like(const hp_dnn_engine *e) {
    hp_dnn_engine other = {.index = e->index, .choice = json_deep_copy(e->choice)};
    memcpy(other.key, e->key, sizeof other.key);
    return other;
}

static void end_like(hp_dnn_engine *e) {
    hp_dnn_release(&e->own);
    json_decref(e->choice);
}

static void a_kept_plan_is_the_plan(void **state) {
    (void)state;
    hp_dnn *dnn = described_dnn(false);
    for (int channels = 32; channels <= 256; channels *= 2) {
        hp_dnn_engine *e = engine_of(dnn, channels), again = like(e);
        hp_dnn_kept_write(dnn, e, HP_DNN_MOST_KEPT);
        char *first = hp_dnn_kept_text(dnn, e);
        assert_true(hp_dnn_engine_recall(dnn, &again));
        assert_true(again.kept);
        assert_int_equal(again.workspace, e->workspace);
        hp_dnn_kept_write(dnn, &again, HP_DNN_MOST_KEPT);
        char *second = hp_dnn_kept_text(dnn, e);
        assert_non_null(first);
        assert_string_equal(first, second);
        free(first);
        free(second);
        end_like(&again);
    }
    hp_dnn_close(dnn);
}

/* Finds the only file of plans. */
static void find_plan(char *path, size_t n) {
    char command[64];
    snprintf(command, sizeof command, "ls %s/hplan/*.plan", folder);
    FILE *f = popen(command, "re");
    assert_non_null(f);
    assert_non_null(fgets(path, (int)n, f));
    path[strcspn(path, "\n")] = '\0';
    assert_int_equal(pclose(f), 0);
}

static void empty_cache(void) {
    char command[64];
    snprintf(command, sizeof command, "rm -rf %s/hplan", folder);
    assert_int_equal(system(command), 0);
}

static json_t *only_plan(const hp_dnn *dnn, const hp_dnn_engine *e, char *path) {
    empty_cache();
    hp_dnn_kept_write(dnn, e, HP_DNN_MOST_KEPT);
    find_plan(path, HP_DNN_PATH);
    return hp_dnn_cache_get(path);
}

static void assert_refused(const hp_dnn *dnn, const hp_dnn_engine *e) {
    hp_dnn_engine again = like(e);
    assert_false(hp_dnn_engine_recall(dnn, &again));
    assert_int_equal(again.own.n, 0);
    end_like(&again);
}

static void plans_of_something_else_are_not_used(void **state) {
    (void)state;
    static const char *const strings[] = {"gpu", "key", "plan"};
    char path[HP_DNN_PATH];
    hp_dnn *dnn = described_dnn(false);
    hp_dnn_engine *e = engine_of(dnn, 64);
    json_t *o = only_plan(dnn, e, path);
    for (int i = 0; i < 3; i++) {
        json_t *other = json_copy(o);
        json_object_set_new(other, strings[i], json_string("another"));
        hp_dnn_cache_put(path, other);
        assert_refused(dnn, e);
        json_decref(other);
    }
    json_t *other = json_copy(o);
    json_object_set_new(other, "cudnn", json_integer(90000));
    hp_dnn_cache_put(path, other);
    assert_refused(dnn, e);
    json_object_update(other, o);
    json_object_set_new(other, "plan", json_string("{}")); /* intact, but cuDNN rejects it */
    json_object_set_new(other, "sum", json_integer((json_int_t)hp_hash64("{}", 2, 0)));
    hp_dnn_cache_put(path, other);
    assert_refused(dnn, e);
    json_object_update(other, o);
    json_object_set_new(other, "choice", json_object());
    hp_dnn_cache_put(path, other);
    assert_refused(dnn, e);
    json_decref(other);
    json_decref(o);
    hp_dnn_close(dnn);
}

/* One byte changed anywhere, or the end lost: reading gives nothing, or the original. */
static void damaged_plans_are_not_used(void **state) {
    enum { TRIALS = 400 };
    (void)state;
    char path[HP_DNN_PATH], text[16384];
    hp_dnn *dnn = described_dnn(false);
    hp_dnn_engine *e = engine_of(dnn, 64);
    json_decref(only_plan(dnn, e, path));
    char *plan = hp_dnn_kept_text(dnn, e);
    FILE *f = fopen(path, "re");
    const size_t n = fread(text, 1, sizeof text - 1, f);
    assert_true(n > 1000 && n < sizeof text - 1);
    fclose(f);
    for (uint64_t i = 0; i < TRIALS; i++) {
        char bad[sizeof text] = "";
        const size_t at = (size_t)hp_rng_below(i, 0, 0, n);
        memcpy(bad, text, n);
        bad[at] = i % 4 ? (char)(1 + hp_rng_below(i, 0, 1, 255)) : '\0';
        spoil(path, bad);
        char *is = hp_dnn_kept_text(dnn, e);
        if (is) assert_string_equal(is, plan);
        free(is);
    }
    free(plan);
    hp_dnn_close(dnn);
}

static void other_kinds_of_files_are_not_used(void **state) {
    (void)state;
    char path[HP_DNN_PATH], other[HP_DNN_PATH + 8];
    hp_dnn *dnn = described_dnn(false);
    hp_dnn_engine *e = engine_of(dnn, 64);
    json_decref(only_plan(dnn, e, path));
    assert_int_equal(truncate(path, HP_DNN_MOST_FILE + 1), 0);
    assert_refused(dnn, e);
    json_decref(only_plan(dnn, e, path));
    snprintf(other, sizeof other, "%s.real", path);
    assert_int_equal(rename(path, other), 0);
    assert_int_equal(symlink(other, path), 0);
    assert_refused(dnn, e);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_refused(dnn, e);
    hp_dnn_close(dnn);
}

static bool has_plan(const hp_dnn *dnn, const hp_dnn_engine *e) {
    char *text = hp_dnn_kept_text(dnn, e);
    const bool has = text != NULL;
    free(text);
    return has;
}

static void the_oldest_plans_make_room(void **state) {
    (void)state;
    char path[HP_DNN_PATH], command[HP_DNN_PATH + 32];
    struct stat is;
    hp_dnn *dnn = described_dnn(false);
    hp_dnn_engine *old = engine_of(dnn, 64), *middle = engine_of(dnn, 128), *young = engine_of(dnn, 256);
    json_decref(only_plan(dnn, old, path));
    assert_int_equal(stat(path, &is), 0);
    snprintf(command, sizeof command, "touch -d 2020-01-01 %s", path);
    assert_int_equal(system(command), 0);
    hp_dnn_kept_write(dnn, middle, HP_DNN_MOST_KEPT);
    assert_true(has_plan(dnn, old));
    hp_dnn_kept_write(dnn, young, 5 * is.st_size / 2);
    assert_false(has_plan(dnn, old));
    assert_true(has_plan(dnn, middle));
    assert_true(has_plan(dnn, young));
    hp_dnn_close(dnn);
}

/* Engines whose plans were built ahead have texts if a driver loads kernels; otherwise they
 * can still be built. */
static void what_is_built_ahead_can_be_used(void **state) {
    enum { N = 2 };
    (void)state;
    hp_dnn *dnn = described_dnn(true);
    hp_dnn_conv c = gradient_of(64);
    hp_dnn_engine *e = NULL, ahead[N], *each[N] = {&ahead[0], &ahead[1]};
    hp_dnn_owner o = {0};
    hp_error err = {0};
    c.kind = HP_DNN_FORWARD;
    c.bias = true;
    c.act = HP_ACT_RELU;
    if (hp_dnn_engine_find(dnn, &c, 64 << 20, &e, &err) != HP_OK) fail_msg("%s", err.text);
    assert_true(e->compiled);
    for (int i = 0; i < N; i++) ahead[i] = like(e);
    const cudnnBackendDescriptor_t graph = hp_dnn_graph_of(&o, NULL, &c);
    hp_dnn_build_ahead(dnn, graph, each, N);
    for (int i = 0; i < N; i++) {
        ahead[i].compiled = true;
        const bool recalls = ahead[i].text != NULL;
        if (recalls) assert_true(hp_dnn_engine_recall(dnn, &ahead[i]));
        if (!recalls) hp_dnn_engine_build(dnn, &ahead[i], hp_dnn_config_of(&o, graph, dnn, e->choice));
        assert_int_equal(ahead[i].own.status, CUDNN_STATUS_SUCCESS);
        assert_false(ahead[i].kept);
        assert_int_equal(ahead[i].workspace, e->workspace);
        end_like(&ahead[i]);
    }
    hp_dnn_release(&o);
    hp_dnn_close(dnn);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(writers_lose_nothing_of_each_other),
                                       cmocka_unit_test(choices_are_kept_from_run_to_run),
                                       cmocka_unit_test(a_kept_plan_is_the_plan),
                                       cmocka_unit_test(plans_of_something_else_are_not_used),
                                       cmocka_unit_test(damaged_plans_are_not_used),
                                       cmocka_unit_test(other_kinds_of_files_are_not_used),
                                       cmocka_unit_test(the_oldest_plans_make_room),
                                       cmocka_unit_test(what_is_built_ahead_can_be_used)};
    return cmocka_run_group_tests(tests, new_cache, end_cache);
}
