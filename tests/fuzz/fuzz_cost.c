/* fuzz_cost.c - any text in place of a cost table: an error with a message, or a table that survives writing
 * with every digit and reading, and gives any collective and message a time. */
#include "tests/fuzz/fuzz_text.h"

#include "costmodels/cost_rows.h"

#include <math.h>

static char *print(hp_arena *a, const hp_cost_table *t) {
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    if (!f || hp_rows_print(f, t, true, NULL) != HP_OK || fclose(f) != 0) abort();
    char *own = hp_arena_strdup(a, text);
    free(text);
    return own;
}

static void ask(const hp_cost_table *t) {
    hp_machine m;
    hp_error err = {0};
    if (hp_machine_load("thesis-a100", &m, &err) != HP_OK) abort();
    for (double bytes = 1; bytes < 1e12; bytes *= 1000) {
        const hp_collective_call c = {.what = HP_COLLECTIVE_ALLREDUCE, .ranks = 8, .per_node = 2};
        if (isnan(hp_cost_p2p(t, &m, HP_WIRE_ANY, true, bytes).seconds)) abort();
        if (isnan(hp_cost_collective(t, &m, &c, bytes).seconds)) abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    hp_arena *a = hp_arena_new();
    hp_cost_table *t, *back, *shipped;
    hp_error err = {0};
    const hp_status s = hp_rows_parse(a, fuzz_text(a, data, size), "x.cost", &t, &err);
    if (s != HP_OK) {
        fuzz_refused(s, HP_EDATA, HP_EDATA, &err);
    } else {
        const char *text = print(a, t);
        if (hp_rows_parse(a, text, "x.cost", &back, &err) != HP_OK || strcmp(print(a, back), text) != 0) {
            fprintf(stderr, "%s\n%s\n", text, err.text);
            abort();
        }
        if (hp_rows_parse(a, hp_shipped_table(), "shipped", &shipped, &err) != HP_OK) abort();
        t->base = shipped;
        ask(t);
    }
    hp_arena_free(a);
    return 0;
}
