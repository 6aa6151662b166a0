/* test_fixes.c - a printed fix can be pasted: its keys into the strategy, its options after the command; the
 * result is a plan and needs the memory that the fix states. */
#include "tests/support/words/words.h"

#include <stdlib.h>
#include <string.h>

#define A100   "--machine thesis-a100 "
#define RESNET "simulate --net resnet18 --image 64 --batch 8 --gpus 2 " A100
enum { TEXT = 256 };

typedef struct refused {
    const char *options, *strategy;
} refused;

/* Is `key` among those of "key=value,key=value"? */
static bool has_key(const char *keys, const char *key, size_t n) {
    for (const char *p = keys; *p; p += strcspn(p, ","), p += *p == ',')
        if (!strncmp(p, key, n) && p[n] == '=') return true;
    return false;
}

static void append(char *list, const char *separator, const char *item, size_t n) {
    const size_t at = strlen(list);
    snprintf(list + at, TEXT - at, "%s%.*s", at ? separator : "", (int)n, item);
}

/* The strategy with these keys replaced. */
static void paste_keys(const char *strategy, const char *keys, char *pasted) {
    *pasted = 0;
    for (const char *p = strategy; *p;) {
        const size_t n = strcspn(p, ",");
        if (!has_key(keys, p, strcspn(p, "="))) append(pasted, ",", p, n);
        p += n + (p[n] == ',');
    }
    if (*keys) append(pasted, ",", keys, strlen(keys));
}

/* "--batch 8, dp=2, micro=4": options and keys. */
static void split_fix(const char *fix, char *options, char *keys) {
    *options = *keys = 0;
    for (const char *p = fix; *p;) {
        const char *end = strstr(p, ", ");
        const size_t n = end ? (size_t)(end - p) : strlen(p);
        if (!strncmp(p, "--", 2))
            append(options, " ", p, n);
        else
            append(keys, ",", p, n);
        p += n + (end ? 2 : 0);
    }
}

/* simulate rejects the strategy, and its fix works; false: there is none. */
static bool try_fix(words *w, const refused *r) {
    char fix[TEXT], needs[TEXT], options[TEXT], keys[TEXT], strategy[TEXT];
    hplan(w, 3, "simulate --net resnet18 --classes 10 %s --strategy %s", r->options, r->strategy);
    err_says(w, "; fix: .");
    err_lacks(w, "smallest fix"); /* its former name */
    if (words_count(w->err, "; fix: none found")) return false;
    words_match(w->err, "; fix: (.*) -> ", fix, sizeof fix);
    words_match(w->err, "; fix: .* -> (.*)$", needs, sizeof needs);
    split_fix(fix, options, keys);
    paste_keys(r->strategy, keys, strategy);
    hplan(w, 0, "simulate --net resnet18 --classes 10 %s %s --strategy %s", r->options, options, strategy);
    if (!*fix || !*needs || !strstr(w->out, needs))
        fail_msg("%s %s: '%s' leads to another need: %s", r->options, r->strategy, fix, w->out);
    return true;
}

static const refused all_refused[] = {
    {A100 "--image 64 --gpus 8", "dp=4,stages=4"},
    {"--machine lassen --image 64", "dp=4000"},
    {A100 "--image 64 --batch 2048", "dp=32,stages=64"},
    {A100 "--image 64", "dp=2,stages=64"},
    {A100 "--image 64", "stages=2,cut=1:1"},
    {A100 "--image 64", "stages=2,cut=1:1:1"},
    {A100 "--image 64", "dp=2,cut=2:3:5"},
    {A100 "--image 64", "sp=2x2:2x1"},
    {A100 "--image 64", "stages=3,sp=2x2,tail=shared"},
    {A100 "--image 64", "sp=2x2,ldp=2"},
    {A100 "--image 64", "cp=1000"},
    {A100 "--image 64", "strips=4"},
    {A100 "--image 64 --mode infer --batch 2", "strips=4"},
    {A100 "--image 64 --batch 63", "stages=2,chunks=2,micro=3"},
    {A100 "--image 64", "stages=2,micro=4,sched=lp"},
    {A100 "--image 64", "stages=3,gems=3"},
    {A100 "--image 64 --batch 64", "dp=3"},
    {A100 "--image 64", "clients=2,comm=nccl"},
    {A100 "--image 96 --rules mpi4dl", "stages=2,sp=2x2,tail=shared"},
    {A100 "--image 96 --rules mpi4dl", "stages=2,cp=2,micro=2,recompute=full"},
    {A100 "--image 512 --batch 64 --memory-limit 2G", "dp=2"},
    {A100 "--image 256 --batch 8 --memory-limit 300M", "dp=1"},
    {A100 "--image 4096 --batch 128", "dp=64,micro=4"},
    {"--machine local --image 256 --memory-limit 250M", "dp=2"},
};
enum { N_REFUSED = (int)(sizeof all_refused / sizeof all_refused[0]) };

static void a_fix_can_be_pasted(void **state) {
    int fixed = 0;
    for (int i = 0; i < N_REFUSED; i++) fixed += try_fix(*state, &all_refused[i]);
    assert_true(fixed >= N_REFUSED - 1);
}

/* ... and the closest alternative is named */
static void where_nothing_helps_it_is_said(void **state) {
    static const refused tiny = {A100 "--image 64 --gpus 1 --memory-limit 1M", "dp=1"};
    words *w = *state;
    assert_false(try_fix(w, &tiny));
    err_says(w, "fix: none found on 1 device");
}

static void say_the_same(words *w, const char *options) {
    hplan(w, 0, "simulate --net resnet18 --image 1024 --memory-limit 2G --top 1 " A100 "%s", options);
    char *table = strdup(w->out);
    hplan(w, 0, "simulate --net resnet18 --image 1024 --memory-limit 2G --top 1 --json " A100 "%s", options);
    const int n = words_length(w, "rejected");
    assert_true(n > 0);
    assert_int_equal(words_count(table, "^ *fix: "), n);
    for (int i = 0; i < n; i++) {
        char line[TEXT];
        snprintf(line, sizeof line, " fix: %s\n", words_text(w, "rejected/%d/fix", i));
        if (!strstr(table, line)) fail_msg("the table lacks '%s': %s", line, table);
    }
    free(table);
}

static void table_and_json_say_the_same(void **state) {
    say_the_same(*state, "--batch 8 --gpus 2");
    if (words_all("fixes of a search of 16 devices")) say_the_same(*state, "--batch 32 --gpus 16");
}

static void why_and_a_search_in_vain_say_it_too(void **state) {
    static const words_row rows[] = {
        {0, RESNET "--strategy dp=2 --out p.db", NULL, NULL},
        {0, "why p.db dp=3", "rejected: E-BATCH: .*; fix: .* -> ", NULL},
        /* a network that no GPU can hold unchanged */
        {3, "simulate --net unet:64 --image 4096 --gpus 1 " A100 "--out u.db", NULL,
         "no feasible plan: .*; fix: .*prec=bf16 -> "},
    };
    each_row(*state, rows);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fix_can_be_pasted),
        cmocka_unit_test(where_nothing_helps_it_is_said),
        cmocka_unit_test(table_and_json_say_the_same),
        cmocka_unit_test(why_and_a_search_in_vain_say_it_too),
    };
    return cmocka_run_group_tests(tests, words_open, words_close);
}
