/* fuzz_strategy.c - any text in place of a strategy: an error with a message, or a value whose text is the
 * same value. A strategy that is legal for a small network is lowered and proved. */
#include "tests/fuzz/fuzz_text.h"

#include "plan/check/check.h"
#include "plan/lower/lower.h"
#include "plan/strategy/strategy.h"

/* Programs that are small enough to be made. */
enum { MOST_RANKS = 16, MOST_PASSES = 32 };

static void prove(hp_arena *a, const hp_strategy *s) {
    hp_graph *g;
    hp_program *p;
    hp_reject why;
    hp_error err = {0};
    const hp_lower_options o = {
        .mode = HP_MODE_TRAIN, .dtype = HP_F32, .batch = hp_strategy_batch(s, 16), .place = true};
    if (hp_net_build(a, "cnn", 28, 28, 10, &g, &err) != HP_OK) abort();
    if (!hp_strategy_legal(s, g, o.batch, 0, &why)) {
        if (why.code == HP_FEASIBLE || !why.limit[0]) abort();
        return;
    }
    if (hp_strategy_ranks(s) > MOST_RANKS || s->micro > MOST_PASSES || s->gems > MOST_PASSES ||
        s->strips > MOST_PASSES)
        return;
    const hp_status made = hp_lower(a, g, s, &o, &p, &err);
    if (made != HP_OK) {
        fuzz_refused(made, HP_EPLAN, HP_EUNAVAIL, &err);
    } else if (hp_program_check(p, g, &err) != HP_OK) {
        fprintf(stderr, "%s\n", err.text);
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    hp_arena *a = hp_arena_new();
    hp_strategy s, back;
    hp_error err = {0};
    char text[HP_STRATEGY_TEXT];
    const hp_status read = hp_strategy_parse(fuzz_text(a, data, size), &s, &err);
    if (read != HP_OK) {
        fuzz_refused(read, HP_EUSAGE, HP_EUNAVAIL, &err);
    } else {
        if (hp_strategy_parse(hp_strategy_text(&s, text), &back, &err) != HP_OK ||
            !hp_strategy_equal(&s, &back))
            abort();
        prove(a, &s);
    }
    hp_arena_free(a);
    return 0;
}
