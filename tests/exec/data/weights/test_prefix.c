/* test_prefix.c - weights of wrapped models: whatever prefix all names have, they load as without it. If no
 * single prefix makes them the network's, they are refused, and the error shows the names of both sides. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "exec/data/weights/safetensors.h"
#include "exec/data/weights/weights_stored.h"
#include "tests/support/plan/data_files.h"

static hp_graph *build(hp_arena *a, const char *net) {
    hp_error err = {0};
    hp_graph *g = NULL;
    if (hp_net_build(a, net, 28, 28, 10, &g, &err) != HP_OK) fail_msg("%s", err.text);
    return g;
}

/* All parameters of the network, one after another. */
static hp_weights place(hp_arena *a, const hp_graph *g) {
    hp_role *role = HP_NEW(a, hp_role, 1);
    int64_t end[2] = {0};
    role->place = HP_NEW(a, hp_param_place, g->n_param);
    for (int i = 0; i < g->n_param; i++) {
        int64_t *at = &end[!hp_param_trained(&g->param[i])];
        role->place[i] =
            (hp_param_place){.here = HP_HERE | HP_START, .count = g->param[i].count, .offset = *at};
        *at += g->param[i].count;
    }
    role->trained_elems = end[0];
    return (hp_weights){.graph = g,
                        .role = role,
                        .dtype = HP_F32,
                        .weights = HP_NEW(a, float, end[0] + 1),
                        .state = HP_NEW(a, float, end[1] + 1)};
}

static const void *lend(void *self, int i, hp_error *err) {
    (void)err;
    const hp_weights *w = self;
    const bool trained = hp_param_trained(&w->graph->param[i]);
    return (const float *)(trained ? w->weights : w->state) + w->role->place[i].offset;
}

static const char *save(hp_arena *a, const hp_graph *g, hp_weights *w) {
    hp_error err = {0};
    const hp_weights_source source = {lend, w};
    const char *path = hp_arena_strdup(a, scratch_path("plain.safetensors"));
    *w = place(a, g);
    hp_weights_init(w, 3);
    if (hp_weights_save(path, g, HP_F32, &source, 1, &err) != HP_OK) fail_msg("%s", err.text);
    return path;
}

/* --- the same file with other names --- */

typedef const char *rename_tensor(hp_arena *a, const char *name, const char *word, int i);

static const void *copied(void *self, int i, hp_error *err) {
    (void)err;
    return ((const hp_st_tensor *)self)[i].data;
}

/* `extra`: names of additional tensors, NULL: none; `times`: copies of the file's tensors. */
static const char *renamed(hp_arena *a, const char *from, rename_tensor *f, const char *const *word,
                           int times, const char *const *extra) {
    static const float nothing[4];
    hp_error err = {0};
    hp_safetensors *st;
    const char *path = hp_arena_strdup(a, scratch_path("renamed.safetensors"));
    int n = 0, more = 0;
    while (extra && extra[more]) more++;
    assert_int_equal(hp_safetensors_open(from, &st, &err), HP_OK);
    hp_st_tensor *t = HP_NEW(a, hp_st_tensor, times * hp_safetensors_count(st) + more + 1);
    for (int k = 0; k < times; k++)
        for (int i = 0; i < hp_safetensors_count(st); i++) {
            t[n] = *hp_safetensors_tensor(st, i);
            t[n].name = f(a, t[n].name, word[k], i);
            n++;
        }
    for (int i = 0; i < more; i++)
        t[n++] = (hp_st_tensor){.name = extra[i],
                                .dtype = HP_ST_F32,
                                .n_dim = 1,
                                .dim = {4},
                                .count = 4,
                                .data = (const unsigned char *)nothing};
    const hp_st_source source = {copied, t};
    assert_int_equal(hp_safetensors_write(path, t, n, &source, &err), HP_OK);
    hp_safetensors_close(st);
    return path;
}

static const char *after(hp_arena *a, const char *name, const char *word, int i) {
    (void)i;
    return hp_arena_printf(a, "%s%s", word, name);
}

static const char *every_other_after(hp_arena *a, const char *name, const char *word, int i) {
    return i % 2 ? name : hp_arena_printf(a, "%s%s", word, name);
}

static const char *without(hp_arena *a, const char *name, const char *word, int i) {
    (void)a, (void)i;
    assert_memory_equal(name, word, strlen(word));
    return name + strlen(word);
}

/* --- taken --- */

static void loads_as(hp_arena *a, const char *path, const hp_weights *wanted, const char *says,
                     const char *also) {
    hp_error err = {0};
    const hp_weights w = place(a, wanted->graph);
    if (hp_weights_load(path, &w, &err) != HP_OK) fail_msg("%s", err.text);
    assert_memory_equal(w.weights, wanted->weights, (size_t)w.role->trained_elems * sizeof(float));
    const char *note = hp_weights_prefix_note(a, path, w.graph);
    if (!says) {
        assert_null(note);
        return;
    }
    if (!note || !strstr(note, says) || !strstr(note, also))
        fail_msg("no '%s' and '%s' in %s", says, also, note);
}

static void prefixes_are_taken_and_said(void **state) {
    static const char *const nets[] = {"cnn", "resnet18", "vit:2,24,3,14"}, *const words[] = {
                                                                                "module.", "model._orig_mod.",
                                                                                "net.backbone.", "conv1.",
                                                                                "a.b.c.d.e."};
    (void)state;
    for (size_t i = 0; i < sizeof nets / sizeof *nets; i++) {
        hp_arena *a = hp_arena_new();
        hp_weights w;
        const char *path = save(a, build(a, nets[i]), &w);
        loads_as(a, path, &w, NULL, NULL);
        for (size_t k = 0; k < sizeof words / sizeof *words; k++)
            loads_as(a, renamed(a, path, after, &words[k], 1, NULL), &w,
                     hp_arena_printf(a, "the network's after '%s'", words[k]), "");
        hp_arena_free(a);
    }
}

static void what_is_not_under_the_prefix_is_left_out(void **state) {
    static const char *const extra[] = {"loss.weight", "optimizer.0.exp_avg", NULL}, *const word = "model.";
    (void)state;
    hp_arena *a = hp_arena_new();
    hp_weights w;
    const char *path = save(a, build(a, "cnn"), &w);
    loads_as(a, renamed(a, path, after, &word, 1, extra), &w, "after 'model.'", "2 tensors, as loss.weight");
    hp_arena_free(a);
}

/* A network exported from a wrapped model, with weights of the model itself, or wrapped otherwise. */
static void prefixes_of_the_network_are_replaced(void **state) {
    static const char *const own = "model.", *const other = "module.";
    (void)state;
    hp_arena *a = hp_arena_new();
    hp_weights w;
    hp_graph *g = build(a, "resnet18");
    for (int i = 0; i < g->n_param; i++) {
        g->param[i].name = hp_arena_printf(a, "%s%s", own, g->param[i].name);
        assert_null(g->param[i].stored.name);
    }
    const char *path = save(a, g, &w);
    const char *plain = renamed(a, path, without, &own, 1, NULL);
    loads_as(a, plain, &w, "with '' instead of 'model.'", "");
    char *kept = hp_arena_strdup(a, scratch_path("kept.safetensors"));
    assert_int_equal(rename(plain, kept), 0);
    loads_as(a, renamed(a, kept, after, &other, 1, NULL), &w, "with 'module.' instead of 'model.'", "");
    hp_arena_free(a);
}

/* --- refused --- */

static void refused(const char *path, const hp_graph *g, const char *const says[3]) {
    hp_arena *a = hp_arena_new();
    hp_error err = {0};
    const hp_weights w = place(a, g);
    assert_int_equal(hp_weights_load(path, &w, &err), HP_EDATA);
    for (int i = 0; i < 3; i++)
        if (!strstr(err.text, says[i])) fail_msg("no '%s' in %s", says[i], err.text);
    assert_null(hp_weights_prefix_note(a, path, g));
    hp_arena_free(a);
}

static void what_no_single_prefix_mends_is_refused(void **state) {
    static const char *const word[] = {"model.", "ema."}, *const head[] = {"model.head2.weight", NULL};
    (void)state;
    hp_arena *a = hp_arena_new();
    hp_weights w;
    hp_graph *g = build(a, "resnet18"), *cnn = build(a, "cnn");
    const char *path = save(a, g, &w);
    refused(renamed(a, path, after, word, 2, NULL), g,
            (const char *const[]){"more than once", "under 'ema.'", "under 'model.'"});
    refused(renamed(a, path, after, word, 1, head), g,
            (const char *const[]){"under its prefix 'model.'", "model.head2.weight is not in the network",
                                  "(1 in all)"});
    refused(renamed(a, path, every_other_after, word, 1, NULL), g,
            (const char *const[]){"is missing", "is not in the network", "in all"});
    refused(renamed(a, path, after, word, 1, NULL), cnn,
            (const char *const[]){"conv1.weight is missing", "model.conv1.weight is not in the network", ""});
    hp_arena_free(a);
}

/* Nobody says which copy is meant: an average of the weights is useful, an optimiser's moments are not. Plain
 * names are a copy like any other; if the others are not the whole network, the plain ones count. */
static void copies_are_refused_in_any_order(void **state) {
    static const struct {
        const char *word[3];
        int n;
        const char *one, *other;
    } files[] = {
        {{"", "ema."}, 2, "under no prefix", "under 'ema.'"},
        {{"ema.", ""}, 2, "under no prefix", "under 'ema.'"},
        {{"", "optimizer.exp_avg."}, 2, "under no prefix", "under 'optimizer.exp_avg.'"},
        {{"optimizer.exp_avg.", ""}, 2, "under no prefix", "under 'optimizer.exp_avg.'"},
        {{"", "ema.", "optimizer.exp_avg."}, 3, "under no prefix", "under 'ema.'"},
        {{"optimizer.exp_avg.", "ema.", ""}, 3, "under no prefix", "under 'ema.'"},
        {{"model.", "model.ema."}, 2, "under 'model.'", "under 'model.ema.'"},
        {{"model.ema.", "model."}, 2, "under 'model.'", "under 'model.ema.'"},
    };
    static const char *const beside[] = {"model.loss.weight", NULL}, *const both[] = {"model.", "ema."},
                             *const plain[] = {""}, *const part[] = {"ema.conv1.weight", NULL};
    (void)state;
    hp_arena *a = hp_arena_new();
    hp_weights w;
    hp_graph *g = build(a, "cnn");
    const char *path = save(a, g, &w);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        refused(renamed(a, path, after, files[i].word, files[i].n, NULL), g,
                (const char *const[]){"more than once", files[i].one, files[i].other});
    refused(renamed(a, path, after, both, 2, beside), g,
            (const char *const[]){"more than once", "under 'model.'", "under 'ema.'"});
    refused(renamed(a, path, after, plain, 1, part), g,
            (const char *const[]){"ema.conv1.weight is not in the network", "(1 in all)", ""});
    hp_arena_free(a);
}

int main(void) {
#define IN_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_setup, scratch_teardown)
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(prefixes_are_taken_and_said),
        IN_SCRATCH(what_is_not_under_the_prefix_is_left_out),
        IN_SCRATCH(prefixes_of_the_network_are_replaced),
        IN_SCRATCH(what_no_single_prefix_mends_is_refused),
        IN_SCRATCH(copies_are_refused_in_any_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
