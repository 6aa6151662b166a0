/* bits_show.c - the first bit in which two runs differ, in words or as JSON. */
#include "cli/show/compare_show.h"

#include "cli/cli.h"
#include "plan/store/store.h"
#include "traces/bits.h"

#include <string.h>

/* The same plan on the same ranks: others hold other parts, and add up in another order. */
static hp_status compare(hp_arena *arena, hp_db *a, hp_db *b, hp_plan *plan, hp_bits *bits, hp_error *err) {
    hp_plan other = {0};
    HP_TRY(hp_plan_read(arena, a, plan, err));
    HP_TRY(hp_plan_read(arena, b, &other, err));
    if (strcmp(plan->hash.hex, other.hash.hex) != 0)
        return hp_fail(err, HP_EDATA,
                       "%s and %s are runs of different plans: only runs of the same plan have the same bits",
                       a->path, b->path);
    return hp_bits_compare(arena, a, b, bits, err);
}

static hp_status load(hp_arena *arena, const char *path_a, const char *path_b, hp_plan *plan, hp_bits *bits,
                      hp_error *err) {
    hp_db a, b;
    HP_TRY(hp_db_open(path_a, &a, err));
    hp_status s = hp_db_open(path_b, &b, err);
    if (s == HP_OK) {
        s = compare(arena, &a, &b, plan, bits, err);
        hp_db_close(&b);
    }
    hp_db_close(&a);
    return s;
}

static const char *part_name(const hp_graph *g, int64_t what) {
    if (what < g->n_param) return g->param[what].name;
    return what == g->n_param ? "one of the rank's weights" : "one of the rank's running statistics";
}

static json_t *bits_json(const hp_bits *b, const hp_graph *g) {
    json_t *o = json_pack("{s:i, s:b, s:i, s:[i, i]}", "schema", 1, "same", b->same, "steps", b->steps,
                          "steps_of_one_alone", b->only[0], b->only[1]);
    if (b->same) return o;
    json_object_set_new(o, "step", json_integer(b->iter + 1));
    json_object_set_new(o, "what", json_string(b->loss ? "loss" : "weights"));
    if (b->loss) return o;
    json_object_set_new(o, "parameter",
                        b->what < g->n_param ? json_string(part_name(g, b->what)) : json_null());
    json_object_set_new(o, "rank", json_integer(b->rank));
    return o;
}

static void print_bits(const hp_bits *b, const hp_graph *g) {
    if (b->same)
        printf("the same bits: losses and weights of %d step%s\n", b->steps, b->steps == 1 ? "" : "s");
    else if (b->loss)
        printf("step %d is the first that differs: in its loss; the weights before it are the same where "
               "they are "
               "recorded\n",
               b->iter + 1);
    else
        printf("step %d is the first that differs: its loss is the same, the weights after it are not: first "
               "%s, on "
               "rank %d\n",
               b->iter + 1, part_name(g, b->what), b->rank);
    if (b->only[0] + b->only[1] > 0)
        printf("not compared: %d step%s of A alone, %d of B alone\n", b->only[0], b->only[0] == 1 ? "" : "s",
               b->only[1]);
}

hp_status bits_show(hp_arena *arena, const char *path_a, const char *path_b, bool json, hp_error *err) {
    hp_plan plan = {0};
    hp_bits bits;
    HP_TRY(load(arena, path_a, path_b, &plan, &bits, err));
    if (json)
        HP_TRY(cli_print_json(bits_json(&bits, plan.graph), err));
    else
        print_bits(&bits, plan.graph);
    HP_TRY(cli_finish_stdout(err));
    return bits.same ? HP_OK : HP_DIFF;
}
