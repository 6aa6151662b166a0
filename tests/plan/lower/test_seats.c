/* test_seats.c - where a strategy's `place` puts its tiles, compared with the grid's geometry; it does not
 * change the traffic. */
#include "plan/lower/lower.h"
#include "plan/lower/lower_placement.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { SIDE = 4, TILES = SIDE * SIDE };

/* Messages of a program: their bytes, and those that cross nodes. */
typedef struct moved {
    int64_t all, across;
} moved;

static hp_machine nodes_of(int nodes, int devices) {
    return (hp_machine){.nodes = nodes, .devices_per_node = devices, .nics_per_node = 1};
}

static hp_strategy parsed(const char *text) {
    hp_strategy s;
    hp_error err;
    if (hp_strategy_parse(text, &s, &err) != HP_OK) fail_msg("%s: %s", text, err.text);
    return s;
}

static const hp_program *lowered(hp_arena *arena, const hp_machine *m, const char *text) {
    hp_graph *g = NULL;
    hp_program *p = NULL;
    hp_error err;
    const hp_strategy s = parsed(text);
    const hp_lower_options o = {.mode = HP_MODE_TRAIN, .dtype = HP_F32, .batch = 4, .machine = m};
    if (hp_net_build(arena, "cnn", 64, 64, 10, &g, &err) != HP_OK ||
        hp_lower(arena, g, &s, &o, &p, &err) != HP_OK)
        fail_msg("%s: %s", text, err.text);
    return p;
}

/* `node`: per rank. */
static moved count(const hp_program *p, const int32_t *node) {
    moved n = {0, 0};
    for (int rank = 0; rank < hp_program_ranks(p); rank++) {
        const hp_role *r = &p->role[rank % p->n_role];
        for (int t = 0; t < r->n_task; t++) {
            if (r->task[t].op != HP_TASK_SEND) continue;
            const int to = rank - rank % p->n_role + r->queue[r->task[t].queue].peer;
            const int64_t bytes = hp_task_bytes(&r->task[t]);
            n.all += bytes;
            if (node[rank] != node[to]) n.across += bytes;
        }
    }
    return n;
}

static moved count_placed(const hp_program *p, const hp_machine *m) {
    int32_t node[2 * TILES];
    for (int rank = 0; rank < hp_program_ranks(p); rank++) node[rank] = hp_rank_node(p, m, rank);
    return count(p, node);
}

/* Block: a node has a row of tiles. Tile: a square. Cyclic: a column. */
static void a_grid_lies_on_nodes_as_rows_squares_columns(void **state) {
    (void)state;
    static const char *const text[] = {"sp=4x4", "sp=4x4,place=tile", "sp=4x4,place=cyclic"};
    const hp_machine m = nodes_of(4, 4);
    moved n[3];
    for (int kind = 0; kind < 3; kind++) {
        hp_arena *arena = hp_arena_new();
        const hp_program *p = lowered(arena, &m, text[kind]);
        int32_t node[TILES];
        for (int k = 0; k < TILES; k++) {
            const int row = k / SIDE, col = k % SIDE;
            node[k] = kind == 0 ? row : kind == 1 ? row / 2 * 2 + col / 2 : col;
            assert_int_equal(hp_rank_node(p, &m, k), node[k]);
        }
        n[kind] = count(p, node);
        const moved placed = count_placed(p, &m);
        assert_int_equal(placed.all, n[kind].all);
        assert_int_equal(placed.across, n[kind].across);
        hp_arena_free(arena);
    }
    assert_int_equal(n[0].all, n[1].all);
    assert_int_equal(n[0].all, n[2].all);
    assert_true(n[1].across < n[0].across && n[1].across < n[2].across);
    assert_true(n[0].across > 0);
}

/* Two replicas of four tiles and one more rank: each replica's tiles share a node, and the other ranks
 * follow. */
static void tiles_of_a_stage_share_a_node(void **state) {
    (void)state;
    const hp_machine m = nodes_of(3, 4);
    hp_arena *arena = hp_arena_new();
    const hp_program *block = lowered(arena, &m, "dp=2,stages=2,sp=2x2"),
                     *tile = lowered(arena, &m, "dp=2,stages=2,sp=2x2,place=tile");
    for (int replica = 0; replica < 2; replica++) {
        for (int k = 0; k < 4; k++) assert_int_equal(hp_rank_node(tile, &m, 5 * replica + k), replica);
        assert_int_equal(hp_rank_node(tile, &m, 5 * replica + 4), 2);
    }
    assert_int_equal(count_placed(block, &m).all, count_placed(tile, &m).all);
    hp_arena_free(arena);
}

static void a_written_placement_is_the_one_that_runs(void **state) {
    (void)state;
    const hp_machine m = nodes_of(4, 2);
    hp_arena *arena = hp_arena_new();
    const hp_program *one = lowered(arena, &m, "dp=2,sp=2x2,place=0:2:1:3"),
                     *all = lowered(arena, &m, "dp=2,sp=2x2,place=7:6:5:4:3:2:1:0");
    static const int32_t seat[] = {0, 2, 1, 3, 4, 6, 5, 7};
    for (int r = 0; r < 8; r++) {
        assert_int_equal(hp_rank_device(one, &m, r), seat[r]);
        assert_int_equal(hp_rank_device(all, &m, r), 7 - r);
    }
    hp_arena_free(arena);
}

/* Nothing is stored for places that are the default. */
static void block_and_one_node_need_no_seats(void **state) {
    (void)state;
    static const char *const text[] = {"sp=4x4", "sp=4x4,place=block", "dp=4,place=0:1:2:3",
                                       "dp=4,place=tile"};
    hp_arena *arena = hp_arena_new();
    const hp_machine four = nodes_of(4, 4), one = nodes_of(1, 16);
    for (size_t i = 0; i < sizeof text / sizeof *text; i++)
        assert_int_equal(lowered(arena, &four, text[i])->n_seat, 0);
    assert_int_equal(lowered(arena, &one, "sp=4x4,place=cyclic")->n_seat, 0);
    hp_arena_free(arena);
}

static hp_reject_code code_of(const char *text) {
    hp_arena *arena = hp_arena_new();
    hp_graph *g = NULL;
    hp_error err;
    hp_reject why;
    const hp_strategy s = parsed(text);
    assert_int_equal(hp_net_build(arena, "cnn", 64, 64, 10, &g, &err), HP_OK);
    hp_strategy_legal(&s, g, 24, 0, &why);
    hp_arena_free(arena);
    return why.code;
}

static void a_placement_is_of_a_replica_or_of_all(void **state) {
    (void)state;
    assert_int_equal(code_of("dp=2,sp=2x2,place=1:0"), HP_REJECT_PLACE);
    assert_int_equal(code_of("dp=2,sp=2x2,place=1:0:3:2"), HP_FEASIBLE);
    assert_int_equal(code_of("sp=2x2,clients=2,place=cyclic"), HP_REJECT_PLACE);
    hp_strategy s;
    hp_error err;
    assert_int_equal(hp_strategy_parse("place=0:0:1", &s, &err), HP_EUSAGE);
    assert_int_equal(hp_strategy_parse("place=0:3:1", &s, &err), HP_EUSAGE);
    assert_int_equal(hp_strategy_parse("place=round", &s, &err), HP_EUSAGE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_grid_lies_on_nodes_as_rows_squares_columns),
        cmocka_unit_test(tiles_of_a_stage_share_a_node),
        cmocka_unit_test(a_written_placement_is_the_one_that_runs),
        cmocka_unit_test(block_and_one_node_need_no_seats),
        cmocka_unit_test(a_placement_is_of_a_replica_or_of_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
