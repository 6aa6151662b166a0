/* seats.c - the strategy's `place` as a permutation of the places of all replicas. */
#include "plan/lower/lower_placement.h"

#include "plan/lower/seat_order.h"
#include "plan/strategy/layout.h"

/* Blocks of places, one after another. */
typedef struct block_list {
    int32_t *member, *size;
    int n, n_member;
} block_list;

/* --- rectangles of tiles --- */

typedef struct rectangle {
    int rows, cols;
} rectangle;

/* The largest that a node has room for, and of those the one with the shortest border. */
static rectangle rectangle_of(int rows, int cols, int room) {
    rectangle best = {1, 1};
    for (int a = 1; a <= rows && a <= room; a++)
        for (int b = 1; b <= cols && a * b <= room; b++) {
            if (rows % a || cols % b) continue;
            const int more = a * b - best.rows * best.cols;
            if (more > 0 || (more == 0 && a + b < best.rows + best.cols)) best = (rectangle){a, b};
        }
    return best;
}

/* Adds a rectangle of tiles from (row, col) of one slice of the samples; a tile has `each` parts. */
static void add_rectangle(block_list *l, const hp_layout *tiles, rectangle of, int row, int col, int first,
                          int each) {
    l->size[l->n++] = of.rows * of.cols * each;
    for (int r = row; r < row + of.rows; r++)
        for (int k = col * each; k < (col + of.cols) * each; k++)
            l->member[l->n_member++] = first + r * tiles->cols * each + k;
}

/* `first`: the place of its first part. Stages without tiles have one tile. */
static void add_position(block_list *l, const hp_strategy *s, int position, int first, int per_node) {
    const hp_layout t = hp_stage_layout(s, position);
    const int each = hp_layout_per_tile(&t) * s->bp, slice = t.rows * t.cols * each;
    const rectangle of = rectangle_of(t.rows, t.cols, per_node / each > 1 ? per_node / each : 1);
    for (int k = 0; k < t.slices / hp_shares(s); k++)
        for (int r = 0; r < t.rows; r += of.rows)
            for (int c = 0; c < t.cols; c += of.cols) add_rectangle(l, &t, of, r, c, first + k * slice, each);
}

static void seats_tile(hp_arena *arena, const hp_strategy *s, int per_node, int32_t *seat) {
    const int places = hp_strategy_devices(s);
    block_list l = {.member = HP_NEW(arena, int32_t, places), .size = HP_NEW(arena, int32_t, places)};
    for (int first = 0; first < places;)
        for (int p = 0; p < hp_positions(s); first += hp_stage_parts(s, p++) / hp_shares(s))
            add_position(&l, s, p, first, per_node);
    hp_seats_pack(per_node, l.member, l.size, l.n, seat);
}

/* --- all kinds --- */

/* The list gives the seats of one replica, repeated for each, or the seats of all replicas. */
static void seats_as_written(const hp_strategy *s, int32_t *seat) {
    const int places = hp_strategy_devices(s);
    for (int k = 0; k < places; k++) seat[k] = k - k % s->place.n_seat + s->place.seat[k % s->place.n_seat];
}

const int32_t *hp_seats_of(hp_arena *arena, const hp_strategy *s, const hp_machine *m) {
    const int places = hp_strategy_devices(s), per_node = m->devices_per_node;
    if (s->place.how == HP_PLACE_BLOCK || m->nodes == 1 || places <= per_node) return NULL;
    int32_t *seat = HP_NEW(arena, int32_t, places);
    if (s->place.how == HP_PLACE_CYCLIC)
        hp_seats_cyclic(places, per_node, seat);
    else if (s->place.how == HP_PLACE_TILE)
        seats_tile(arena, s, per_node, seat);
    else
        seats_as_written(s, seat);
    return hp_seats_are_plain(places, seat) ? NULL : seat;
}

hp_placement hp_placement_of_strategy(hp_arena *arena, const hp_strategy *s, const hp_machine *m) {
    return (hp_placement){.roles = hp_strategy_roles(s),
                          .replicas = hp_strategy_replicas(s),
                          .clients = s->clients,
                          .nodes = m->nodes,
                          .devices_per_node = m->devices_per_node,
                          .seat = hp_seats_of(arena, s, m)};
}
