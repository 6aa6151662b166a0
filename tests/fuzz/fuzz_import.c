/* fuzz_import.c - any text in place of output of nccl-tests, the OSU micro-benchmarks or `hplan bench comm`:
 * an error with a message, or rows that a cost table can hold. */
#include "tests/fuzz/fuzz_text.h"

#include "costmodels/tuning/import.h"

static void add_rows(hp_arena *a, const hp_import *i) {
    hp_error err = {0};
    hp_cost_table *t = hp_rows_new(a, "m", "2026-01-01"), *back;
    const hp_status s = hp_import_rows(i, t, &err);
    if (s != HP_OK) {
        fuzz_refused(s, HP_EDATA, HP_EDATA, &err);
        return;
    }
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    hp_rows_sort(t);
    if (!f || hp_rows_print(f, t, true, &err) != HP_OK || fclose(f) != 0) abort();
    if (hp_rows_parse(a, text, "x", &back, &err) != HP_OK) {
        fprintf(stderr, "%s\n%s\n", text, err.text);
        abort();
    }
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static hp_machine m;
    hp_error err = {0};
    if (!m.nodes && hp_machine_load("thesis-a100", &m, &err) != HP_OK) abort();
    hp_arena *a = hp_arena_new();
    for (int given = 0; given < 2; given++) {
        const hp_import_options o = {.machine = &m,
                                     .op = given ? "all_reduce" : NULL,
                                     .ranks = given ? 8 : 0,
                                     .per_node = given ? 2 : 0};
        hp_import *i = hp_import_new(a, &o);
        const hp_status s = hp_import_text(i, fuzz_text(a, data, size), "x", "2026-01-01", &err);
        if (s != HP_OK)
            fuzz_refused(s, HP_EDATA, HP_EUSAGE, &err);
        else
            add_rows(a, i);
    }
    hp_arena_free(a);
    return 0;
}
