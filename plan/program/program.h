/* program.h - the task program: plain data, two interpreters (sim/ on a virtual clock, exec/ on devices).
 *
 * Stored per role. A role is a place in the model (a tile of a pipeline stage; with GEMS also its mirror
 * image); the `dp` replicas of a role share its task list. Rank r of the world is replica r / n_role, role
 * r % n_role.
 *
 * Meaning. A rank has one compute queue and one queue per (peer, direction, channel) and per communicator.
 * Tasks of a queue start in the order of the role's task list. A task may start when its dependencies are
 * done. Sends, receives and collectives are non-blocking: starting one does not hold the compute queue, only
 * a dependency on it does. */
#ifndef HP_PROGRAM_H
#define HP_PROGRAM_H

#include "plan/codec/codec.h"
#include "machines/device/device_kind.h"
#include "plan/collectives/collective.h"
#include "networks/graph/graph.h"
#include "plan/strategy/strategy.h"
#include "plan/tiles/tile.h"

typedef enum hp_queue_kind { HP_QUEUE_COMPUTE, HP_QUEUE_SEND, HP_QUEUE_RECV, HP_QUEUE_COLL } hp_queue_kind;

typedef enum hp_phase {
    HP_PHASE_LOAD,
    HP_PHASE_PACK,
    HP_PHASE_FORWARD,
    HP_PHASE_BACKWARD,
    HP_PHASE_OPTIMIZER,
    HP_PHASE_TRANSFER,
    HP_PHASE_REDUCE,
    HP_PHASES
} hp_phase;
extern const char *const hp_phase_names[HP_PHASES];

typedef enum hp_task_op {
#define TASK(id, ...) HP_TASK_##id,
#include "plan/program/program_ops.def"
#undef TASK
    HP_TASK_OPS
} hp_task_op;

/* Opcodes of collectives follow each other (program.c asserts it). */
static inline hp_task_op hp_task_of_collective(hp_collective c) {
    return (hp_task_op)((int)HP_TASK_ALLREDUCE + (int)c);
}

/* What a task says beside its operands: which member of hp_task's union it has. */
typedef enum hp_task_family {
    HP_FAMILY_NONE,
    HP_FAMILY_ROWS,
    HP_FAMILY_FORWARD,
    HP_FAMILY_BACKWARD,
    HP_FAMILY_MAXSUM,
    HP_FAMILY_ZERO,
    HP_FAMILY_CODE,
    HP_FAMILY_UPDATE,
    HP_FAMILY_MESSAGE,
    HP_FAMILY_COLLECTIVE,
    HP_FAMILY_DUMMY
} hp_task_family;

typedef struct hp_task_info {
    const char *name;
    hp_queue_kind queue;
    hp_phase phase;
    hp_task_family family;
} hp_task_info; /* its operands: plan/program/operands.h */
extern const hp_task_info hp_task_infos[HP_TASK_OPS];

/* Type of a tensor's elements in a program that computes in `real`. */
hp_dtype hp_tensor_dtype(const hp_tensor *t, hp_dtype real);

/* Task flags. */
enum {
    HP_FLAG_ADD = 1,       /* add to the result (gradient accumulation) instead of overwriting it */
    HP_FLAG_RECOMPUTE = 2, /* forward again for the backward pass: running statistics stay as they are */
    HP_FLAG_EVAL = 4,      /* forward with running statistics, no dropout, loss without gradient */
    HP_FLAG_METRIC = 8,    /* all-reduce of the metric buffer (float64) over all ranks: the end of a step */
    HP_FLAG_FIRST = 16, /* bn forward: the role's first group of the step, and its last (hp_task.forward) */
    HP_FLAG_LAST = 32,
    /* all-reduce of parameters and the optimiser's state in every program.local-th step, else nothing */
    HP_FLAG_AVERAGE = 64
};

/* Rows [lo, hi) of the tensor that a task of a deployed program is about; both 0: all in its boxes. */
typedef struct hp_rows {
    int32_t lo, hi;
} hp_rows;

typedef struct hp_task {
    uint8_t op; /* hp_task_op */
    uint8_t flags;
    uint8_t dtype;              /* type of the data moved (messages, collectives) */
    uint8_t algorithm;          /* hp_algorithm of a collective; else 0 */
    int16_t queue;              /* index into role.queue; 0 = compute */
    int16_t chunk;              /* index into role.slot: which of the role's stages this belongs to */
    int32_t layer;              /* fwd, bwd, bwdw, pack; else -1 */
    int32_t micro;              /* micro-batch or -1 */
    int32_t operand, n_operand; /* range of role.operand */
    union {                     /* by hp_task_infos[op].family */
        /* load, copy, store */
        hp_rows rows;
        /* fwd */
        struct {
            hp_rows rows;
            /* Batch norm in training: groups after the role's last one, and those skipped before this one. */
            uint32_t following;
            int32_t skipped;
            int64_t pixels; /* batch norm with sums: those that the statistics cover, on all ranks together */
        } forward;
        /* bwd */
        struct {
            int64_t pixels; /* as in forward */
        } backward;
        struct {
            int64_t first; /* float64 in the sums with which the rank's own block begins */
        } maxsum;
        struct {
            int64_t first, elems; /* within the buffer */
        } zero;
        /* encode, decode, project, factor, expand */
        struct {
            int32_t bucket;        /* whose gradients; -1: a box's values, all of them */
            int64_t first, values; /* within the gradients, or the box */
        } code;
        /* part, update, finite, norm */
        struct {
            int32_t bucket;
            int32_t call;         /* 0: of every rank; else 1 + index into program.call: of its root alone */
            int64_t first, elems; /* the bucket's, within the gradients */
        } update;
        /* send, recv */
        struct {
            int32_t position; /* the message's position within its channel */
            int64_t elems;
        } message;
        struct {
            int32_t bucket; /* whose parameters or gradients; -1: of none */
            int32_t call;  /* 0: a sum (root 0, equal parts, on one node); else 1 + index into program.call */
            int64_t first; /* element within the buffer */
            int64_t elems; /* elements of the whole data (hp_collective_data.count) */
        } collective;
        struct {
            int64_t ns; /* CPU time */
        } dummy;
    };
} hp_task;
/* 48 bytes, as program.c asserts: programs of many ranks are large. */

static inline hp_task_family hp_task_family_of(const hp_task *t) {
    return t->op < HP_TASK_OPS ? hp_task_infos[t->op].family : HP_FAMILY_NONE;
}
/* The bucket that a task is about; -1: none. */
int32_t hp_task_bucket(const hp_task *t);
/* Elements of a buffer, or of the gradients, that a task is about; both 0: its operands say. */
hp_elements hp_task_range(const hp_task *t);
/* Rows that a task is about. Both 0: all rows, or none. */
hp_rows hp_task_rows(const hp_task *t);
/* 1 + index into program.call; 0: none. */
int32_t hp_task_call_index(const hp_task *t);
/* Pixels that the statistics of a batch norm with sums cover, forward or backward. */
static inline int64_t hp_norm_pixels(const hp_task *t) {
    return t->op == HP_TASK_FWD ? t->forward.pixels : t->backward.pixels;
}
/* What a message or a collective moves, of the whole data. */
static inline int64_t hp_task_bytes(const hp_task *t) {
    return hp_task_range(t).count * hp_dtype_bytes((hp_dtype)t->dtype);
}

enum { HP_CHANNEL_GRADIENTS = 1, HP_CHANNEL_WITHIN = 2 };

typedef struct hp_queue {
    int32_t kind;    /* hp_queue_kind */
    int32_t peer;    /* send, recv: the peer's role (same replica); coll: group id; compute: -1 */
    int32_t channel; /* send, recv: the two ends of a channel match in order; HP_CHANNEL_GRADIENTS: of
                      * gradients, HP_CHANNEL_WITHIN: between the parts of a stage */
    int32_t backend; /* hp_backend */
} hp_queue;

/* A communicator: members are the roles program.member[first .. first+n-1], ascending; of the rank's own
 * replica, or of all replicas (each replica's members in turn). */
typedef struct hp_group {
    int32_t first, n;
    int32_t all_replicas; /* 1: the members of every data replica */
    int32_t spare;
} hp_group;

typedef enum hp_buffer_kind {
    HP_BUF_WEIGHTS,   /* trained parameters of the role, one flat array (buffer 0) */
    HP_BUF_GRADS,     /* same layout (1); absent (0 bytes) in inference */
    HP_BUF_OPTIMIZER, /* the optimiser's states in turn, each of that layout (2); absent in inference */
    HP_BUF_STATE,     /* running statistics (3) */
    HP_BUF_METRIC,    /* HP_METRICS float64 (4) */
    HP_BUF_SCRATCH,   /* the device's scratch (5) */
    HP_BUF_FIXED,     /* number of the above; further buffers are: */
    HP_BUF_PACK = HP_BUF_FIXED, /* weights in a device layout */
    HP_BUF_TENSOR,              /* an activation */
    HP_BUF_GRADIENT,            /* the gradient of an activation */
    HP_BUF_SAVE, /* what a layer keeps for its backward pass (bn: mean, inverse std; max-pool: argmax) */
    HP_BUF_LABELS,
    HP_BUF_MESSAGE, /* a box of a tensor or gradient on its way */
    HP_BUF_SUMS,    /* sums over ranks, float64. bn: two per channel; maxsum: HP_MAXSUMS per row and rank */
    HP_BUF_BLOCK,   /* parameters of a bucket, or their gradients, of which the rank keeps a part alone */
    HP_BUF_CODE,    /* what a codec makes of a box, or of gradients (what -1), on its way */
    HP_BUF_CARRY,   /* what codecs keep from step to step, all the time; zeros before the first */
    HP_BUF_KINDS
} hp_buffer_kind;

enum { HP_MAX_ROLES = 1 << 16 };
/* One rank's sums over its classes, for each row of logits. The sums of all ranks give softmax and loss
 * (Shoeybi et al. 2019, section 3; rescaled by the greatest maximum as in Milakov and Gimelshein 2018). LABEL
 * is the label's logit, 0 on ranks without the label's class. */
enum { HP_MAXSUM_MAX, HP_MAXSUM_SUM, HP_MAXSUM_AT, HP_MAXSUM_LABEL, HP_MAXSUMS };
/* The metric buffer: sums over the samples of the step, or over their pixels where the network gives a class
 * per pixel; foreground is every class but 0. */
enum {
    HP_METRIC_LOSS,
    HP_METRIC_COUNTED, /* those with a label */
    HP_METRIC_CORRECT,
    HP_METRIC_HIT,       /* correct foreground */
    HP_METRIC_PREDICTED, /* foreground */
    HP_METRIC_LABELLED,  /* foreground */
    HP_METRIC_OVERFLOW,  /* gradients that are not finite: where there are, the optimiser does nothing */
    HP_METRIC_SQUARES,   /* sum over all gradients, where they are clipped */
    HP_METRIC_ASKED,     /* not of samples: what the ranks want of each other after the step (hp_step.ask) */
    HP_METRICS
};

typedef struct hp_buffer {
    uint8_t kind;        /* hp_buffer_kind */
    uint8_t dtype;       /* hp_dtype */
    uint16_t codec;      /* hp_codec; of codes, else 0 */
    int32_t what;        /* tensor or layer id; of a block the bucket; -1 */
    int32_t micro;       /* -1: not of one micro-batch */
    int32_t first, last; /* first and last task of the role that uses it (persistent: 0, n_task) */
    int32_t spare2;
    int64_t bytes;
    int64_t offset; /* in the role's arena */
    /* Tensors, gradients, messages: which part of tensor `what`, samples counted within the micro-batch.
     * Labels: samples, rows, columns. bn's save: the part of the output whose pixels this rank's statistics
     * count; max-pool's save: as the output. Else empty. */
    hp_box box;
} hp_buffer;

/* Where a role keeps a parameter: rows [first_row, first_row + rows) of its dimension 0 (all but with channel
 * parallelism). */
enum {
    HP_HERE = 1,
    /* the role that saves this range, among all that hold it; running statistics: a role whose share counts
     * (the true value is the sum over homes and replicas) */
    HP_HOME = 2,
    HP_START = 4 /* running statistics begin with the initial value on replica 0, else with zero */
};
typedef struct hp_param_place {
    int32_t here;  /* HP_HERE | ...; 0: not on this role */
    int32_t group; /* roles and replicas that hold the same range, -1: this rank alone */
    int64_t
        offset; /* first element in WEIGHTS, GRADS, each state of OPTIMIZER; running statistics: in STATE */
    int64_t first, count; /* elements of the parameter that are here */
} hp_param_place;

/* Trained parameters that are reduced and updated together. With ZeRO each member of the group updates a
 * part. */
typedef struct hp_bucket {
    int64_t first, count; /* elements of the role's parameters, padding included: equal parts */
    int64_t shard;        /* first element of the rank's part in a buffer of parts alone */
    int32_t group;        /* who holds them, each of them all; -1: this rank alone */
    int32_t parts;        /* into which the members divide the update; 1: each does all of it */
} hp_bucket;
static inline int64_t hp_bucket_part(const hp_bucket *b) {
    return b->count / b->parts;
}

/* A stage that a role takes part in. */
typedef struct hp_slot {
    int32_t stage; /* virtual stage: chunk * stages + stage */
    int32_t part, flip;
    int32_t spare;
} hp_slot;

typedef struct hp_role {
    int32_t stage; /* position in the pipeline */
    int32_t n_slot;
    hp_slot *slot;
    int32_t n_task, n_operand, n_dep, n_buffer, n_queue, n_bucket;
    hp_task *task;
    int32_t *operand;   /* buffer ids */
    int32_t *dep_first; /* n_task + 1: CSR */
    int32_t *dep;       /* task ids of the same role, each smaller than the task that waits */
    hp_buffer *buffer;
    hp_queue *queue;
    hp_bucket *bucket;                     /* in memory order; programs that are not of a network have none */
    hp_param_place *place;                 /* per graph parameter */
    int32_t *pack_forward, *pack_backward; /* per graph layer: buffer id or -1 */
    int64_t trained_elems;                 /* elements of all its trained parameters, padding included */
    int64_t arena_bytes;                   /* planned peak */
    int64_t live_bytes;                    /* lower bound: most bytes alive at once */
} hp_role;

/* How a collective is called, beside its operation, type and count: the same for all members. */
typedef struct hp_call {
    int32_t reduction; /* hp_reduction */
    int32_t root;      /* member */
    int32_t per_node;  /* members on each node, filled one after another; 0: all on one, or no matter where */
    int32_t first, n;  /* range of program.part: elements of each member's part; n = 0: equal parts */
} hp_call;

typedef enum hp_mode { HP_MODE_TRAIN, HP_MODE_INFER } hp_mode;

typedef struct hp_program {
    int32_t mode;        /* hp_mode; HP_MODE_INFER programs are also what --eval runs */
    int32_t dtype;       /* HP_F32, or HP_F64 for --device ref */
    int32_t dp;          /* data replicas (clients included) */
    int32_t micro;       /* micro-batches of a replica in one step, all GEMS passes together */
    int32_t clients;     /* ranks that share a device; replicas k*clients .. k*clients+clients-1 do */
    int32_t bn;          /* hp_bn */
    int32_t zero;        /* ZeRO's stage */
    int32_t local;       /* steps from one average of the replicas to the next; 0: none, they are alike */
    int32_t device;      /* hp_device_kind */
    int64_t batch;       /* global */
    int64_t micro_batch; /* samples of one micro-batch on one replica: batch / (dp*micro) */
    int32_t n_role, n_group, n_member;
    hp_role *role;
    hp_group *group; /* group 0 is the world */
    int32_t *member; /* roles */
    int32_t n_call, n_part;
    hp_call *call;
    int64_t *part;
    int32_t n_share; /* data replicas within one program, with equally many roles in a row; 0: dp are alike */
    int64_t *share;  /* samples of each in a micro-batch */
    int32_t n_seat;  /* places in the list: all of them, or 0: each has its own seat (machines/placement.h) */
    int32_t *seat;
} hp_program;

static inline int hp_program_ranks(const hp_program *p) {
    return p->dp * p->n_role;
}

/* Samples over which the role's batch norms take statistics, if ranks share them (not bn=local). */
int64_t hp_norm_samples(const hp_program *p, int role);
/* How often a step's running statistics take up a batch norm's, one after another. */
static inline int64_t hp_norm_groups(const hp_program *p) {
    return (int64_t)p->micro * (p->bn == (int)HP_BN_ALL ? 1 : p->n_share ? p->n_share : p->dp);
}

/* Is the buffer what a codec has made? */
static inline bool hp_buffer_is_code(const hp_buffer *b) {
    return b->kind == HP_BUF_CODE;
}
/* Bytes of a box as the codec makes them: pixels by channels. */
static inline int64_t hp_codec_box_bytes(hp_codec c, const hp_box *box) {
    const int64_t channels = hp_box_len(box, HP_AXIS_C);
    return hp_codec_bytes(c, hp_box_elems(box) / (channels ? channels : 1), channels);
}

/* Is the opcode the host's work, done before anything after it in the compute queue begins? */
static inline bool hp_task_on_host(int op) {
    return op == HP_TASK_STORE || op == HP_TASK_DUMMY;
}
/* Is the opcode one that the executor does itself, whatever the device? */
static inline bool hp_task_of_executor(int op) {
    return op == HP_TASK_LOAD || hp_task_on_host(op);
}
/* Is the opcode a collective? Which? */
static inline bool hp_task_is_collective(const hp_task *t) {
    return hp_task_infos[t->op].queue == HP_QUEUE_COLL;
}
static inline hp_collective hp_task_collective(const hp_task *t) {
    return (hp_collective)(t->op - HP_TASK_ALLREDUCE);
}
hp_call hp_task_call(const hp_program *p, const hp_task *t);
/* Has this rank work in the task? An optimiser task with a call belongs to its root alone, the bucket's
 * server. */
bool hp_task_works(const hp_program *p, const hp_role *r, const hp_task *t, int replica);
/* What the steps of a collective task depend on, and where its parts lie. */
hp_collective_case hp_task_case(const hp_program *p, const hp_role *r, const hp_task *t);
hp_collective_data hp_task_data(const hp_program *p, const hp_task *t);
/* The algorithm of a collective task that no one chose: LIBRARY where the back end has its own, and for all
 * other tasks. */
hp_algorithm hp_task_algorithm(const hp_program *p, const hp_role *r, const hp_task *t);
/* Why a back end's library does not do a collective as plan/collectives defines it; NULL: it does. */
const char *hp_backend_lacks(int32_t backend, hp_collective what, hp_reduction reduction, hp_dtype dtype,
                             bool in_place);

/* --- parameters --- */

/* Does each rank keep its parts of this fixed buffer alone? (Rajbhandari et al., SC 2020, section 5.) */
static inline bool hp_keeps_parts(const hp_program *p, int buffer) {
    return p->zero >= (buffer == HP_BUF_OPTIMIZER ? 1
                       : buffer == HP_BUF_GRADS   ? 2
                       : buffer == HP_BUF_WEIGHTS ? 3
                                                  : INT32_MAX);
}
/* Elements of a buffer of parts alone. */
int64_t hp_part_elems(const hp_role *r);
/* First element of the rank's part of a bucket in a fixed buffer or a block. */
int64_t hp_part_at(const hp_program *p, const hp_role *r, int buffer, int bucket, int member);
/* Elements that a task about a bucket's parts works on. */
int64_t hp_updated_elems(const hp_role *r, const hp_task *t);

/* --- groups --- */

static inline int hp_group_size(const hp_program *p, int group) {
    return p->group[group].n * (p->group[group].all_replicas ? p->dp : 1);
}
bool hp_group_has_role(const hp_program *p, int group, int role);
/* The rank's number among the group's members. */
int hp_group_member(const hp_program *p, int group, int role, int replica);
/* Do two groups have the same members? A back end's own group is another one. -1: no group. */
bool hp_group_equal(const hp_program *p, int a, int b);
/* Member `k` of the group as `replica` sees it: a rank of the world. */
static inline int hp_group_rank(const hp_program *p, int group, int replica, int k) {
    const hp_group *g = &p->group[group];
    const int r = g->all_replicas ? k / g->n : replica;
    return r * p->n_role + p->member[g->first + k % g->n];
}

/* The part of an operand's box that a task with rows is about. */
static inline hp_box hp_task_box(const hp_task *t, const hp_box *box) {
    const hp_rows rows = hp_task_rows(t);
    hp_box b = *box;
    if (rows.hi <= rows.lo) return b;
    if (b.lo[HP_AXIS_H] < rows.lo) b.lo[HP_AXIS_H] = rows.lo;
    if (b.hi[HP_AXIS_H] > rows.hi) b.hi[HP_AXIS_H] = rows.hi;
    return b;
}

/* Does it hold a part of a tensor, or its gradient? (Programs of messages alone have buffers that do not.) */
static inline bool hp_buffer_has_box(const hp_buffer *b) {
    return (b->kind == HP_BUF_TENSOR || b->kind == HP_BUF_GRADIENT || b->kind == HP_BUF_MESSAGE ||
            b->kind == HP_BUF_CODE) &&
           b->what >= 0;
}

/* Every buffer a task touches, -1 left out: its operands, and the packed weights of its layer. Returns how
 * many. */
enum { HP_MAX_USES = 2 * HP_MAX_IN + 8 };
int hp_task_uses(const hp_role *r, int task, int32_t buffer[HP_MAX_USES]);

#endif
