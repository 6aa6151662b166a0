/* allreduce.c - recursive doubling and the ring, lane by lane (Thakur, Rabenseifner, Gropp 2005, section 4).
 */
#include "exec/comm/allreduce.h"

/* Up to here one exchange of everything is taken to beat two of halves, and a slice of this size to stay in a
 * core's cache between its arrival and its addition: values that did well on 2 ranks of one node (Open
 * MPI 4.1.4: 0.2 ms for 2 MiB, MPI_Iallreduce 0.5 ms), not the result of a sweep. */
enum { SHORT_BYTES = 32 << 10, SLICE_BYTES = 256 << 10, MAX_LANES = 1 << 14 };

static int log2_floor(int n) {
    int k = 0;
    while ((2 << k) <= n) k++;
    return k;
}

hp_allreduce hp_allreduce_plan(int rank, int size, int64_t count, int elem_bytes) {
    hp_allreduce a = {.algorithm = HP_ALLREDUCE_DOUBLING,
                      .rank = rank,
                      .size = size,
                      .count = count,
                      .slice = count,
                      .lanes = 1,
                      .steps = 0};
    const int k = log2_floor(size);
    if (count * elem_bytes <= SHORT_BYTES) {
        a.steps = size == 1 << k ? k : k + 2; /* beyond a power of two: fold in, fold out */
        return a;
    }
    a.algorithm = HP_ALLREDUCE_RING;
    a.steps = 2 * (size - 1);
    const int64_t segment = (count + size - 1) / size;
    a.slice = SLICE_BYTES / elem_bytes;
    if (a.slice > segment) a.slice = segment;
    while ((segment + a.slice - 1) / a.slice > MAX_LANES) a.slice *= 2;
    a.lanes = (int32_t)((segment + a.slice - 1) / a.slice);
    return a;
}

/* Slice `lane` of segment `s`: the segments are equal but for the last ones, which the end of the data may
 * cut. */
static void ring_slice(const hp_allreduce *a, int s, int lane, int64_t *offset, int64_t *count) {
    const int64_t segment = (a->count + a->size - 1) / a->size;
    const int64_t begin = s * segment, end = begin + segment < a->count ? begin + segment : a->count;
    *offset = begin + lane * a->slice;
    *count = *offset + a->slice < end ? a->slice : end - *offset;
    if (*count < 0) *count = 0;
}

static hp_allreduce_step ring_step(const hp_allreduce *a, int lane, int step) {
    const int p = a->size, r = a->rank;
    const bool reduce = step < p - 1;
    const int t = reduce ? step : step - (p - 1);
    const int out = ((reduce ? r : r + 1) - t + 2 * p) % p, in = (out - 1 + p) % p;
    hp_allreduce_step s = {.send_to = (r + 1) % p, .recv_from = (r - 1 + p) % p, .add = reduce};
    ring_slice(a, out, lane, &s.send_offset, &s.send_count);
    ring_slice(a, in, lane, &s.recv_offset, &s.recv_count);
    return s;
}

static hp_allreduce_step whole(const hp_allreduce *a, int send_to, int recv_from, bool add) {
    return (hp_allreduce_step){.send_to = send_to,
                               .recv_from = recv_from,
                               .add = add,
                               .send_count = send_to < 0 ? 0 : a->count,
                               .recv_count = recv_from < 0 ? 0 : a->count};
}

/* Ranks from 2^k on hand their data to rank - 2^k before, and get the sum from it after. */
static hp_allreduce_step doubling_step(const hp_allreduce *a, int step) {
    const int k = log2_floor(a->size), half = 1 << k, r = a->rank;
    const int fold = a->size == half ? 0 : 1;
    if (fold && (step == 0 || step == k + 1)) {
        const bool in = step == 0;
        if (r >= half) return in ? whole(a, r - half, -1, false) : whole(a, -1, r - half, false);
        if (r + half >= a->size) return whole(a, -1, -1, false);
        return in ? whole(a, -1, r + half, true) : whole(a, r + half, -1, false);
    }
    if (r >= half) return whole(a, -1, -1, false);
    const int peer = r ^ (1 << (step - fold));
    return whole(a, peer, peer, true);
}

hp_allreduce_step hp_allreduce_at(const hp_allreduce *a, int lane, int step) {
    return a->algorithm == HP_ALLREDUCE_RING ? ring_step(a, lane, step) : doubling_step(a, step);
}
