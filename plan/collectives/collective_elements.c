/* collective_elements.c - steps in elements: places of blocks, and the slices that a lane moves. */
#include "plan/collectives/collective.h"

#include <stddef.h>

/* A slice of SLICE_BYTES is assumed to stay in a core's cache between arrival and addition. The value did
 * well on 2 ranks of one node; it does not come from a sweep. */
enum { SLICE_BYTES = 256 << 10, MAX_LANES = 1 << 14 };

static int64_t divide_up(int64_t n, int64_t unit) {
    return (n + unit - 1) / unit;
}

static int64_t smaller(int64_t a, int64_t b) {
    return a < b ? a : b;
}

/* --- where members' blocks lie --- */

static hp_piece part_of(const int64_t *part, int32_t stride, int32_t i) {
    hp_piece p = {.count = part[(int64_t)i * stride]};
    for (int32_t k = 0; k < i; k++) p.offset += part[(int64_t)k * stride];
    return p;
}

static hp_piece equal_part(int64_t count, int64_t each, int32_t i) {
    const int64_t begin = smaller(i * each, count);
    return (hp_piece){.offset = begin, .count = smaller(each, count - begin)};
}

/* Place of block i of an all-to-all, among its 2 x size blocks. */
static hp_piece exchanged(const hp_collective_plan *p, int32_t i) {
    const int32_t size = p->c.size;
    const bool outgoing = i < size;
    const int64_t *part = p->data.part;
    if (!outgoing) i -= size;
    hp_piece at = !part      ? equal_part(p->data.count, p->data.count / size, i)
                  : outgoing ? part_of(part + (int64_t)p->member * size, 1, i)
                             : part_of(part + p->member, size, i);
    at.outgoing = outgoing;
    return at;
}

static hp_piece whole_block(const hp_collective_plan *p, int32_t i) {
    if (p->c.what == HP_COLLECTIVE_ALL_TO_ALL) return exchanged(p, i);
    if (p->data.part) return part_of(p->data.part, 1, i);
    return equal_part(p->data.count, divide_up(p->data.count, p->c.size), i);
}

hp_piece hp_collective_block(const hp_collective_plan *p, int32_t i) {
    return whole_block(p, p->c.what == HP_COLLECTIVE_ALL_TO_ALL ? p->c.size + i : i);
}

/* --- slices --- */

/* Elements of the largest block, the same on all members. */
static int64_t largest_block(const hp_collective_plan *p) {
    const int32_t size = p->c.size;
    const bool exchange = p->c.what == HP_COLLECTIVE_ALL_TO_ALL;
    if (!p->data.part) return exchange ? p->data.count / size : divide_up(p->data.count, p->blocks);
    const int64_t n = exchange ? (int64_t)size * size : size;
    int64_t most = 0;
    for (int64_t i = 0; i < n; i++) most = p->data.part[i] > most ? p->data.part[i] : most;
    return most;
}

hp_collective_plan hp_collective_whole(hp_algorithm a, const hp_collective_case *c, int32_t member,
                                       const hp_collective_data *data) {
    hp_collective_plan p = {.c = *c, .ops = hp_algorithms[a], .data = *data, .member = member};
    if (c->what == HP_COLLECTIVE_BARRIER) p.data.count = 1;
    if (!hp_collective_parts(c->what)) p.data.part = NULL;
    p.blocks = hp_algorithm_blocks(a, c);
    p.steps = p.ops->steps(c);
    p.slice = largest_block(&p);
    p.lanes = p.slice > 0;
    return p;
}

hp_collective_plan hp_collective_plan_of(hp_algorithm a, const hp_collective_case *c, int32_t member,
                                         const hp_collective_data *data) {
    hp_collective_plan p = hp_collective_whole(a, c, member, data);
    const int64_t block = p.slice;
    p.slice = smaller(SLICE_BYTES / data->elem_bytes, block);
    while (block > p.slice * MAX_LANES) p.slice *= 2;
    p.lanes = block ? (int32_t)divide_up(block, p.slice) : 0;
    return p;
}

/* A block with a fixed place is sliced into lanes. Other data is split into lanes first, so that a lane's
 * part of neighbouring blocks is one run. */
static hp_piece slice_of(const hp_collective_plan *p, int32_t lane, int32_t block) {
    if (hp_collective_parts(p->c.what)) {
        hp_piece at = whole_block(p, block);
        const int64_t skip = smaller(lane * p->slice, at.count);
        at.offset += skip;
        at.count = smaller(p->slice, at.count - skip);
        return at;
    }
    const int64_t width = p->slice * p->blocks, begin = smaller(lane * width, p->data.count),
                  count = smaller(width, p->data.count - begin);
    hp_piece at = equal_part(count, divide_up(count, p->blocks), block);
    at.offset += begin;
    return at;
}

/* --- ranges of blocks --- */

static int32_t block_at(const hp_collective_plan *p, const hp_block_range *r, int32_t x) {
    const bool exchange = p->c.what == HP_COLLECTIVE_ALL_TO_ALL;
    const int32_t n = exchange ? p->c.size : p->blocks, base = exchange && r->first >= n ? n : 0;
    const int32_t i = r->first - base + (r->down ? n - x : x);
    return base + i % n;
}

static void advance(const hp_block_range *r, int32_t *x) {
    if (++*x % r->stride >= r->width) *x += r->stride - r->width;
}

bool hp_collective_next(const hp_collective_plan *p, int32_t lane, const hp_block_range *r, int32_t *x,
                        hp_piece *piece) {
    *piece = (hp_piece){0};
    for (; *x < r->span; advance(r, x)) {
        const hp_piece at = slice_of(p, lane, block_at(p, r, *x));
        if (piece->count == 0)
            *piece = at;
        else if (piece->offset + piece->count == at.offset)
            piece->count += at.count;
        else
            return true;
    }
    return piece->count > 0;
}

int64_t hp_collective_elems(const hp_collective_plan *p, int32_t lane, const hp_block_range *r) {
    int64_t elems = 0;
    for (int32_t x = 0; x < r->span; advance(r, &x)) elems += slice_of(p, lane, block_at(p, r, x)).count;
    return elems;
}
