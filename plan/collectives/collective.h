/* collective.h - collectives as small programs: who sends which blocks to whom, and what is added in which
 * order. A plan names an algorithm for every collective; the executor runs its steps over messages between
 * pairs of ranks (back end `own`), the simulator prices the same steps, the prover (tests/plan/collectives)
 * follows the blocks through them.
 *
 * The data is cut into blocks. In every step a member sends blocks to at most one member and receives blocks
 * from at most one; its step ends when both have arrived. So the order of the additions is part of the plan:
 * every run gives the same bits. */
#ifndef HP_COLLECTIVE_H
#define HP_COLLECTIVE_H

#include <stdbool.h>
#include <stdint.h>

typedef enum hp_collective {
#define COLLECTIVE(ID, ...) HP_COLLECTIVE_##ID,
#include "plan/collectives/collectives.def"
    HP_COLLECTIVES
} hp_collective;

/* Which blocks a member contributes at the beginning, or has at the end. */
typedef enum hp_blocks_of { HP_BLOCKS_ALL, HP_BLOCKS_OWN, HP_BLOCKS_ROOT, HP_BLOCKS_EACH } hp_blocks_of;

typedef struct hp_collective_info {
    const char *name; /* "allreduce" */
    hp_blocks_of begins, ends;
    bool adds;
    int32_t passes;
} hp_collective_info;
extern const hp_collective_info hp_collective_infos[HP_COLLECTIVES];

/* Are there as many blocks as members, each with a place of its own in the data? Else algorithms cut the data as they
 * like. */
static inline bool hp_collective_parts(hp_collective c) {
    const hp_collective_info *i = &hp_collective_infos[c];
    return i->begins == HP_BLOCKS_OWN || i->ends == HP_BLOCKS_OWN || i->begins == HP_BLOCKS_EACH;
}
static inline bool hp_collective_rooted(hp_collective c) {
    const hp_collective_info *i = &hp_collective_infos[c];
    return i->begins == HP_BLOCKS_ROOT || i->ends == HP_BLOCKS_ROOT;
}
/* nccl-tests' factor from bytes / time to bus bandwidth, of n members. */
double hp_collective_bus_factor(hp_collective c, int32_t n);
/* Share of the whole data that a member sends on the average, if nobody sends anything twice. */
double hp_collective_volume(hp_collective c, int32_t n);
/* The collective of a name; -1: none. */
int hp_collective_find(const char *name);

/* How contributions are added up. Sums of integers wrap around (as two's complement and modulo 2^n); a maximum or
 * minimum with a NaN is a NaN; an average is the sum divided by the number of members, of integers rounded
 * towards zero; 16-bit floats are added in float32 and rounded to nearest after every addition. */
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
    HP_ALGORITHM_LIBRARY, /* the back end's own: opaque, measured as a whole */
#define ALGORITHM(ID, id) HP_ALGORITHM_##ID,
#include "plan/collectives/algorithms.def"
    HP_ALGORITHMS
} hp_algorithm;

/* What steps depend on. */
typedef struct hp_collective_case {
    hp_collective what;
    int32_t size, root; /* members; the member that is root, else 0 */
    int32_t per_node;   /* members fill node after node, so many each; size: all are on one node */
} hp_collective_case;

/* Blocks (first + x) modulo their number, for 0 <= x < span with x % stride < width; `down`: (first - x). Of an
 * all-to-all, what goes out and what comes in go around each on its own. */
typedef struct hp_block_range {
    int32_t first, span, width, stride;
    bool down;
} hp_block_range;

/* Of all-to-all, block i < size is what goes to member i, block size + i what came from member i: algorithms
 * must move the member's own as well, by a message to itself, which costs nothing. */
typedef struct hp_block_step {
    int32_t send_to, recv_from; /* member; -1: none; both the member itself: it copies */
    hp_block_range send, recv;  /* as many blocks as the other end's */
    bool add;                   /* what arrives is added to the member's own blocks; else it replaces them */
} hp_block_step;

/* The steps on the longest path, for the simulator. */
typedef struct hp_collective_part {
    int32_t rounds;
    double sent; /* share of the whole data that a member sends in these */
} hp_collective_part;

typedef struct hp_collective_load {
    hp_collective_part inside; /* steps whose messages all stay on their node */
    hp_collective_part across; /* steps of which a message leaves its node */
    double added;              /* share of the whole data that a member adds, at most */
    /* Share of the whole data that a member sends or receives, at most: of data in many slices, which follow each
     * other through the steps, the time of each but the first. */
    double busy;
    int32_t crossing; /* messages that leave a node at once, at most */
} hp_collective_load;

typedef struct hp_algorithm_ops {
    const char *name; /* "ring" */
    uint32_t does;    /* collectives: 1 << hp_collective */
    uint32_t even;    /* of these collectives: those whose blocks must be of equal size */
    bool (*fits)(const hp_collective_case *c); /* NULL: any number of members and nodes */
    /* NULL: as many as members; of all-to-all always 2 x members */
    int32_t (*blocks)(const hp_collective_case *c);
    int32_t (*steps)(const hp_collective_case *c); /* the same for all members; some may idle in a step */
    /* `lane`: slices of the blocks may take different ways */
    hp_block_step (*step)(const hp_collective_case *c, int32_t member, int32_t lane, int32_t step);
    /* A closed form, of algorithms with so many steps that walking through them takes too long; NULL: walk. */
    hp_collective_load (*load)(const hp_collective_case *c);
} hp_algorithm_ops;

/* By hp_algorithm; LIBRARY has a name alone. */
extern const hp_algorithm_ops *const hp_algorithms[HP_ALGORITHMS];

/* The algorithm of a name; -1: none. */
int hp_algorithm_find(const char *name);
/* Can it do this collective among so many? */
bool hp_algorithm_does(hp_algorithm a, const hp_collective_case *c, bool even);
/* Where nothing was measured: for so many bytes of the whole data. */
hp_algorithm hp_algorithm_choose(const hp_collective_case *c, int64_t bytes, bool even);
int32_t hp_algorithm_blocks(hp_algorithm a, const hp_collective_case *c);
/* load, or the walk through the steps: collective_load.c */
hp_collective_load hp_algorithm_load(hp_algorithm a, const hp_collective_case *c);

/* --- what a member does with its elements: collective_elements.c --- */

/* Where the blocks of a collective lie that have a place of their own: `part[i]` elements of member i, one after
 * another; of all-to-all part[i * size + j] go from member i to member j. NULL: equal parts of `count`, the end
 * of the data may cut the last ones short. */
typedef struct hp_collective_data {
    /* Elements of the whole: of an all-reduce, broadcast or reduce the data; of those with parts all parts together;
     * of an all-to-all what a member sends: without parts `size` times as much as goes to each, what is left over
     * stays where it is. */
    int64_t count;
    const int64_t *part;
    int32_t elem_bytes;
} hp_collective_data;

/* Each block is cut into lanes, which go through the steps independently of each other: a lane waits for its
 * step's send and receive before it takes the next one, the others go on. */
typedef struct hp_collective_plan {
    hp_collective_case c;
    const hp_algorithm_ops *ops;
    hp_collective_data data;
    int32_t member, blocks, steps, lanes;
    int64_t slice; /* elements of a lane's part of a block, at most */
} hp_collective_plan;

/* A run of elements: of the data, or of what an all-to-all sends. */
typedef struct hp_piece {
    int64_t offset, count;
    bool outgoing;
} hp_piece;

hp_collective_plan hp_collective_plan_of(hp_algorithm a, const hp_collective_case *c, int32_t member,
                                         const hp_collective_data *data);
/* The same in a single lane: what all lanes together do. */
hp_collective_plan hp_collective_whole(hp_algorithm a, const hp_collective_case *c, int32_t member,
                                       const hp_collective_data *data);
static inline hp_block_step hp_collective_at(const hp_collective_plan *p, int32_t lane, int32_t step) {
    return p->ops->step(&p->c, p->member, lane, step);
}
/* The lane's elements of a range of blocks, run after run: call with *x = 0, until false. Runs that touch are one. */
bool hp_collective_next(const hp_collective_plan *p, int32_t lane, const hp_block_range *r, int32_t *x,
                        hp_piece *piece);
/* All of them together. */
int64_t hp_collective_elems(const hp_collective_plan *p, int32_t lane, const hp_block_range *r);
/* Where member i's block lies in the data (of all-to-all: what came from it). */
hp_piece hp_collective_block(const hp_collective_plan *p, int32_t i);

#endif
