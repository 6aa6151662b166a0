/* collective.c - the table of algorithms, the choice among them, and steps in elements. */
#include "plan/collectives/collective.h"

#include "plan/collectives/algorithms.h"

static const hp_collective_ops library = {.name = "library"};

const hp_collective_ops *const hp_collectives[HP_ALGORITHMS] = {
    [HP_ALGORITHM_LIBRARY] = &library,
    [HP_ALGORITHM_DOUBLING] = &hp_collective_doubling,
    [HP_ALGORITHM_RING] = &hp_collective_ring,
};

/* Up to SHORT_BYTES one exchange of everything is taken to beat two of halves, and a slice of SLICE_BYTES to
 * stay in a core's cache between its arrival and its addition: values that did well on 2 ranks of one node
 * (Open MPI 4.1.4: 0.2 ms for 2 MiB, MPI_Iallreduce 0.5 ms), not the result of a sweep. */
enum { SHORT_BYTES = 32 << 10, SLICE_BYTES = 256 << 10, MAX_LANES = 1 << 14 };

hp_algorithm hp_allreduce_choose(int64_t bytes) {
    return bytes <= SHORT_BYTES ? HP_ALGORITHM_DOUBLING : HP_ALGORITHM_RING;
}

static int64_t divide_up(int64_t n, int64_t unit) {
    return (n + unit - 1) / unit;
}

hp_collective_plan hp_collective_plan_of(hp_algorithm algorithm, int32_t member, int32_t size, int64_t count,
                                         int elem_bytes) {
    const hp_collective_ops *ops = hp_collectives[algorithm];
    hp_collective_plan p = {.ops = ops, .member = member, .size = size, .count = count};
    p.block = divide_up(count, ops->blocks(size));
    p.slice = SLICE_BYTES / elem_bytes;
    if (p.slice > p.block) p.slice = p.block;
    while (p.block > p.slice * MAX_LANES) p.slice *= 2;
    p.lanes = p.slice ? (int32_t)divide_up(p.block, p.slice) : 0;
    p.steps = ops->steps(size);
    return p;
}

/* Slice `lane` of a block. */
static void slice_of(const hp_collective_plan *p, int32_t block, int32_t lane, int64_t *offset,
                     int64_t *count) {
    const int64_t begin = block * p->block, end = begin + p->block < p->count ? begin + p->block : p->count;
    *offset = begin + lane * p->slice;
    *count = *offset + p->slice < end ? p->slice : end - *offset;
    if (*count < 0) *count = 0;
}

hp_collective_step hp_collective_at(const hp_collective_plan *p, int32_t lane, int32_t step) {
    const hp_block_step b = p->ops->step(p->size, p->member, step);
    hp_collective_step s = {.send_to = b.send_to, .recv_from = b.recv_from, .add = b.add};
    if (b.send_to >= 0) slice_of(p, b.send_block, lane, &s.send_offset, &s.send_count);
    if (b.recv_from >= 0) slice_of(p, b.recv_block, lane, &s.recv_offset, &s.recv_count);
    return s;
}
