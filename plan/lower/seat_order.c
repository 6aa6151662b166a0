/* seat_order.c - deals places to nodes in turn, and packs blocks of them. */
#include "plan/lower/seat_order.h"

#include "base/arena.h"

bool hp_seats_are_plain(int places, const int32_t *seat) {
    for (int k = 0; k < places; k++)
        if (seat[k] != k) return false;
    return true;
}

/* Only the last node has fewer seats, so only it can be skipped. */
void hp_seats_cyclic(int places, int per_node, int32_t *seat) {
    const int nodes = (places + per_node - 1) / per_node;
    for (int node = 0, row = 0, k = 0; k < places; k++) {
        seat[k] = node * per_node + row;
        if (++node == nodes || node * per_node + row >= places) node = 0, row++;
    }
}

/* --- packing --- */

typedef struct packing {
    int per_node, nodes;
    int32_t *used; /* per node: seats taken */
    int32_t *room; /* per node: seats */
    int32_t *seat;
} packing;

static void take_seat(packing *p, int node, int32_t place) {
    p->seat[place] = node * p->per_node + p->used[node]++;
}

/* Packs blocks of one size; returns those that fit on no node. */
static void pack_size(packing *p, int size, const int32_t *member, const int32_t *sizes, int n_block) {
    int node = 0, anywhere = 0;
    for (int b = 0, at = 0; b < n_block; at += sizes[b++]) {
        if (sizes[b] != size) continue;
        while (node < p->nodes && p->room[node] - p->used[node] < size) node++;
        for (int k = 0; k < size; k++) {
            while (node == p->nodes && p->used[anywhere] == p->room[anywhere]) anywhere++;
            take_seat(p, node < p->nodes ? node : anywhere, member[at + k]);
        }
    }
}

/* The largest size below `below`; 0: none. */
static int next_size(const int32_t *sizes, int n_block, int below) {
    int most = 0;
    for (int b = 0; b < n_block; b++)
        if (sizes[b] < below && sizes[b] > most) most = sizes[b];
    return most;
}

void hp_seats_pack(int per_node, const int32_t *member, const int32_t *size, int n_block, int32_t *seat) {
    hp_arena *scratch = hp_arena_new();
    int places = 0;
    for (int b = 0; b < n_block; b++) places += size[b];
    packing p = {.per_node = per_node, .nodes = (places + per_node - 1) / per_node, .seat = seat};
    p.used = HP_NEW(scratch, int32_t, p.nodes + 1);
    p.room = HP_NEW(scratch, int32_t, p.nodes + 1);
    for (int n = 0; n < p.nodes; n++)
        p.room[n] = (n + 1) * per_node <= places ? per_node : places - n * per_node;
    for (int n = next_size(size, n_block, INT32_MAX); n > 0; n = next_size(size, n_block, n))
        pack_size(&p, n, member, size, n_block);
    hp_arena_free(scratch);
}
