/* collective.h - collectives as small programs: who sends which blocks to whom, and what is added in which
 * order.
 *
 * A plan names an algorithm for every collective. The executor runs its steps over messages between pairs of
 * ranks (back end `own`), the simulator prices the same steps, and the prover (tests/plan/collectives)
 * follows the blocks through them.
 *
 * The data is split into blocks. In every step, a member sends blocks to at most one member and receives from
 * at most one; its step ends when both are complete. The plan thus fixes the order of additions: every run
 * gives the same bits. */
#ifndef HP_COLLECTIVE_H
#define HP_COLLECTIVE_H

#include <stdbool.h>
#include <stdint.h>

typedef enum hp_collective {
#define COLLECTIVE(ID, ...) HP_COLLECTIVE_##ID,
#include "plan/collectives/collectives.def"
    HP_COLLECTIVES
} hp_collective;

/* Blocks that a member contributes at the beginning, or has at the end. */
typedef enum hp_blocks_of { HP_BLOCKS_ALL, HP_BLOCKS_OWN, HP_BLOCKS_ROOT, HP_BLOCKS_EACH } hp_blocks_of;

typedef struct hp_collective_info {
    const char *name; /* "allreduce" */
    hp_blocks_of begins, ends;
    bool adds;
    int32_t passes;
} hp_collective_info;
extern const hp_collective_info hp_collective_infos[HP_COLLECTIVES];

/* Does every member have one block with a fixed place in the data? If not, algorithms may split the data
 * freely. */
static inline bool hp_collective_parts(hp_collective c) {
    const hp_collective_info *i = &hp_collective_infos[c];
    return i->begins == HP_BLOCKS_OWN || i->ends == HP_BLOCKS_OWN || i->begins == HP_BLOCKS_EACH;
}
static inline bool hp_collective_rooted(hp_collective c) {
    const hp_collective_info *i = &hp_collective_infos[c];
    return i->begins == HP_BLOCKS_ROOT || i->ends == HP_BLOCKS_ROOT;
}
/* Ratio of bus bandwidth to bytes / time for n members, as nccl-tests defines it. */
double hp_collective_bus_factor(hp_collective c, int32_t n);
/* Average share of the whole data that a member sends, if nothing is sent twice. */
double hp_collective_volume(hp_collective c, int32_t n);
/* Finds a collective by name; -1 if unknown. */
int hp_collective_find(const char *name);

/* How contributions are combined. Integer sums wrap around (two's complement, modulo 2^n). A maximum or
 * minimum with a NaN is a NaN. An average is the sum divided by the number of members, rounded towards zero
 * for integers. 16-bit floats are added in float32 and rounded to nearest after every addition. */
typedef enum hp_reduction {
    HP_REDUCE_SUM,
    HP_REDUCE_MIN,
    HP_REDUCE_MAX,
    HP_REDUCE_AVG,
    HP_REDUCTIONS
} hp_reduction;
extern const char *const hp_reduction_names[HP_REDUCTIONS + 1]; /* "sum", ..., NULL */

/* --- algorithms --- */

typedef enum hp_algorithm {
    HP_ALGORITHM_LIBRARY, /* the back end's own algorithm: opaque, measured as a whole */
#define ALGORITHM(ID, id) HP_ALGORITHM_##ID,
#include "plan/collectives/algorithms.def"
    HP_ALGORITHMS
} hp_algorithm;

/* What steps depend on. */
typedef struct hp_collective_case {
    hp_collective what;
    int32_t size, root; /* number of members; index of the root, 0 if there is none */
    int32_t per_node;   /* members per node, filled one node after another; size: all on one node */
} hp_collective_case;

/* Blocks (first + x) modulo their number, for 0 <= x < span with x % stride < width; (first - x) if `down`.
 * In an all-to-all, outgoing and incoming blocks wrap around separately. */
typedef struct hp_block_range {
    int32_t first, span, width, stride;
    bool down;
} hp_block_range;

/* One step of a member. In an all-to-all, block i < size goes to member i, and block size + i came from
 * member i. Algorithms must also move the member's own block, by a message to itself that costs nothing. */
typedef struct hp_block_step {
    int32_t send_to, recv_from; /* member; -1: none; both equal to the member: it copies */
    hp_block_range send, recv;  /* as many blocks as the other end has */
    bool add;                   /* arriving blocks are added to the member's own; otherwise they replace
                                 * them */
} hp_block_step;

/* The steps on the longest path, for the simulator. */
typedef struct hp_collective_part {
    int32_t rounds;
    double sent; /* share of the whole data that a member sends in these rounds */
} hp_collective_part;

typedef struct hp_collective_load {
    hp_collective_part inside; /* steps whose messages all stay within a node */
    hp_collective_part across; /* steps with a message that crosses nodes */
    double added;              /* largest share of the whole data that a member adds */
    /* Largest share of the whole data that a member sends or receives. For data in many slices that pipeline
     * through the steps, it sets the time of every slice after the first. */
    double busy;
    int32_t crossing; /* most messages that leave a node at once */
} hp_collective_load;

typedef struct hp_algorithm_ops {
    const char *name; /* "ring" */
    uint32_t does;    /* collectives: 1 << hp_collective */
    uint32_t even;    /* collectives that need blocks of equal size: 1 << hp_collective */
    bool (*fits)(const hp_collective_case *c); /* NULL: accepts any number of members and nodes */
    /* NULL: as many blocks as members; an all-to-all always has 2 x members */
    int32_t (*blocks)(const hp_collective_case *c);
    int32_t (*steps)(const hp_collective_case *c); /* same for all members; some may idle in a step */
    /* `lane`: slices of the blocks may take different routes */
    hp_block_step (*step)(const hp_collective_case *c, int32_t member, int32_t lane, int32_t step);
    /* Closed form, for algorithms with too many steps to walk through; NULL: walk. */
    hp_collective_load (*load)(const hp_collective_case *c);
} hp_algorithm_ops;

/* Indexed by hp_algorithm; LIBRARY has only a name. */
extern const hp_algorithm_ops *const hp_algorithms[HP_ALGORITHMS];

/* Finds an algorithm by name; -1 if unknown. */
int hp_algorithm_find(const char *name);
/* Does the algorithm support this collective and group size? */
bool hp_algorithm_does(hp_algorithm a, const hp_collective_case *c, bool even);
/* Default choice without measurements, given the bytes of the whole data. */
hp_algorithm hp_algorithm_choose(const hp_collective_case *c, int64_t bytes, bool even);
int32_t hp_algorithm_blocks(hp_algorithm a, const hp_collective_case *c);
/* Calls `load`, or walks through the steps: collective_load.c. */
hp_collective_load hp_algorithm_load(hp_algorithm a, const hp_collective_case *c);

/* --- what a member does with its elements: collective_elements.c --- */

/* Places of the blocks of a collective whose blocks have fixed places. `part[i]` is the number of elements of
 * member i, stored in order; in an all-to-all, part[i * size + j] elements go from member i to member j.
 * NULL: equal parts of `count`; the end of the data may truncate the last ones. */
typedef struct hp_collective_data {
    /* Elements in total. All-reduce, broadcast, reduce: the data. Collectives with parts: the sum of all
     * parts. All-to-all: what a member sends; without parts, `size` times the elements for each member, and
     * the remainder stays in place. */
    int64_t count;
    const int64_t *part;
    int32_t elem_bytes;
} hp_collective_data;

/* Each block is split into lanes, which go through the steps independently: a lane waits for the send and
 * receive of its own step only. */
typedef struct hp_collective_plan {
    hp_collective_case c;
    const hp_algorithm_ops *ops;
    hp_collective_data data;
    int32_t member, blocks, steps, lanes;
    int64_t slice; /* largest number of elements of a lane's part of a block */
} hp_collective_plan;

/* A run of elements in the data, or in the outgoing data of an all-to-all. */
typedef struct hp_piece {
    int64_t offset, count;
    bool outgoing;
} hp_piece;

hp_collective_plan hp_collective_plan_of(hp_algorithm a, const hp_collective_case *c, int32_t member,
                                         const hp_collective_data *data);
/* The plan with a single lane, which does the work of all lanes. */
hp_collective_plan hp_collective_whole(hp_algorithm a, const hp_collective_case *c, int32_t member,
                                       const hp_collective_data *data);
static inline hp_block_step hp_collective_at(const hp_collective_plan *p, int32_t lane, int32_t step) {
    return p->ops->step(&p->c, p->member, lane, step);
}
/* Iterates over the lane's runs of elements in a range of blocks: start with *x = 0, stop at false. Adjacent
 * runs are merged. */
bool hp_collective_next(const hp_collective_plan *p, int32_t lane, const hp_block_range *r, int32_t *x,
                        hp_piece *piece);
/* All of them together. */
int64_t hp_collective_elems(const hp_collective_plan *p, int32_t lane, const hp_block_range *r);
/* Place of member i's block in the data; in an all-to-all, of the block received from member i. */
hp_piece hp_collective_block(const hp_collective_plan *p, int32_t i);

#endif
