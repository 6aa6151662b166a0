/* lower_inside.h - what the files of the lowering share: the role being written, a pass through one of its
 * stages, and the steps of which a pass consists. */
#ifndef HP_LOWER_INSIDE_H
#define HP_LOWER_INSIDE_H

#include "plan/lower/lower.h"
#include "plan/strategy/layout.h"
#include "plan/strategy/schedule.h"

/* Messages under way to this rank. */
typedef struct hp_arrivals {
    int32_t n, *buffer;
} hp_arrivals;

/* One forward pass of one micro-batch through one slot of a role: which buffer holds what; -1 none. */
typedef struct hp_frame {
    int32_t *act;                    /* per tensor: what this part has of it */
    int32_t *grad;                   /* per tensor: the gradient of that, so far */
    int32_t *ext;                    /* per tensor: the larger box that came together in an exchange */
    int32_t *ext_grad;               /* per tensor: the gradient of that, so far */
    int32_t *in;                     /* per layer input (geometry's need index): what the layer reads */
    struct hp_arrivals *came, *back; /* per tensor: messages of its exchange, and of the exchange's adjoint */
    int32_t *save;                   /* per layer */
} hp_frame;

/* A virtual stage: layers first .. end-1, what enters and what leaves, and how its parts share it. */
typedef struct hp_vstage {
    int32_t first, end, deep; /* deep: layers before it are streamed */
    int32_t n_in, *in;        /* tensors received from the virtual stage before, forwarded ones included */
    int32_t n_out, *out;      /* tensors sent to the one after */
    hp_geometry *geo;
    hp_box *ext;        /* [part * n_tensor + tensor]: box that an exchange brings together; empty: none */
    bool *exchanges;    /* per tensor: does any part need more of it than it has? */
    int32_t *first_use; /* per tensor: first layer of the stage that reads it; n_layer: the loss; -1 none */
} hp_vstage;

typedef struct hp_dep {
    int32_t task, on;
} hp_dep;

/* Lists of tasks, all in one array: a list is where its first lies, -1 if it is empty. */
typedef struct hp_lists {
    int32_t n, room;
    struct {
        int32_t task, next;
    } * at;
} hp_lists;

/* What the lowering knows before it writes the first role; constant from then on. */
typedef struct hp_lower_facts {
    hp_arena *arena; /* the program's; what the lowering itself needs lies there too */
    const hp_graph *g;
    const hp_strategy *s;
    const hp_lower_options *o;
    int32_t n_vstage;
    hp_vstage *vstage;
    int32_t *last_use; /* per tensor */
    bool *live;        /* per tensor: the loss depends on it */
    bool *learns;      /* per tensor: it depends on parameters */
} hp_lower_facts;

/* The groups of a virtual stage; -1: one rank alone. */
typedef struct hp_stage_groups {
    int32_t *weights; /* groups of whole layers, then of split ones, per slice (see lower_slice) */
    int32_t *sync;    /* see lower_sync_group */
    int32_t *classes; /* [flip * n_part + part]: who splits the classes of the same logits; NULL: nobody */
} hp_stage_groups;

/* The program being written: what all its roles share and add to. */
typedef struct hp_program_builder {
    const hp_lower_facts *facts;
    hp_program *p;
    int group_room, member_room, call_room;
    int keep;                /* steps that a sent buffer stays alive after the step that sends it */
    hp_stage_groups *groups; /* per virtual stage */
    int32_t *tied_group; /* [layer * slices + slice]: who holds what layers of other stages are tied to; -1 */
    int first_stats;     /* groups from here on sum statistics; those before it gradients and metrics */
    /* For the groups that lower_groups made: */
    int32_t *fill; /* hp_group_fill; -1: not asked yet */
    int32_t roots; /* communicators that a group may need of each back end, for as many roots */
    int32_t
        *twin; /* per group, root and back end: the group of the same members that it serves; -1: none yet */
} hp_program_builder;

/* The room of a role's arrays, and which tasks used its buffers last: lower/lower_emit.c. */
typedef struct hp_lower_emit {
    int task_room, operand_room, buffer_room, queue_room;
    int n_dep, dep_room;
    hp_dep *dep;
    int writer_room, reader_room;
    hp_lists readers;
    int32_t *writer; /* per buffer: last task that wrote it, -1 */
    int32_t *reader; /* per buffer: sends that read it since, a list */
} hp_lower_emit;

/* Buffers of the role's sends over stage boundaries, in order. */
typedef struct hp_lower_sent {
    int n, room;
    int32_t *buffer;
    int step;
    int32_t *after; /* per step: n at its end */
} hp_lower_sent;

/* Where the parameters of layers lie on the role, and what has become of their gradients. */
typedef struct hp_lower_params {
    int32_t *holder;    /* per layer: see lower_holder */
    int32_t *bucket_of; /* per layer: see lower_bucket */
    int32_t *last_of;   /* per layer: the bucket of which it is the last that the backward pass meets, -1 */
    bool *touched;      /* per layer that holds its parameters: the gradients hold a micro-batch already */
    int32_t *grad_task; /* per layer: last task that wrote its gradients, -1 */
} hp_lower_params;

/* ZeRO, see lower/blocks.c. */
typedef struct hp_lower_zero {
    struct hp_block *block;   /* per bucket */
    int32_t *pack_now[2];     /* per layer: packs of open blocks, forward and backward, -1 */
    int32_t run_from, run_to; /* layers that the pass runs through before it turns */
    struct {
        int32_t bucket, buffer;
    } scattered; /* a block of which the part was not taken yet; bucket -1: none */
} hp_lower_zero;

/* The role being written. */
typedef struct hp_role_builder {
    const hp_lower_facts *facts;
    hp_program_builder *shared;
    int32_t role;
    hp_role *r;
    hp_lower_emit emit;
    hp_lower_sent sent;
    hp_lower_params params;
    hp_lower_zero zero;
    hp_frame *frame;       /* per slot * micro */
    bool defers;           /* the schedule runs weight gradients apart (zb) */
    int32_t metric_writer; /* last loss task */
    int64_t scratch_bytes; /* most that a task wants */
} hp_role_builder;

/* Where a pass happens: a slot of the role, its stage and part there, and the micro-batch. */
typedef struct hp_pass {
    const hp_vstage *v;
    hp_frame *f;
    int32_t slot, stage, part, flip; /* stage: virtual */
    int32_t micro;
} hp_pass;

static inline bool lower_train(const hp_lower_facts *f) {
    return f->o->mode == HP_MODE_TRAIN;
}
static inline const hp_box *lower_have(const hp_lower_facts *f, const hp_pass *a, int tensor) {
    return hp_geometry_have(a->v->geo, f->g, a->part, tensor);
}
static inline const hp_box *lower_own(const hp_lower_facts *f, const hp_pass *a, int tensor) {
    return hp_geometry_own(a->v->geo, f->g, a->part, tensor);
}
static inline int lower_need_index(const hp_pass *a, int layer, int k) {
    return a->v->geo->need_first[layer - a->v->first] + k;
}
static inline bool lower_wants_gradient(const hp_lower_facts *f, int tensor) {
    return f->learns[tensor] && f->live[tensor]; /* the image needs none */
}

/* lower/lower_emit.c: tasks, buffers, dependencies */
int32_t lower_buffer(hp_role_builder *c, hp_buffer_kind kind, hp_dtype dtype, int64_t elems, int what,
                     int micro);
/* A tensor's, a gradient's or a message's buffer for a box. */
int32_t lower_box(hp_role_builder *c, hp_buffer_kind kind, int tensor, int micro, const hp_box *box);
const hp_box *lower_box_of(const hp_role_builder *c, int32_t buffer);
int32_t lower_queue(hp_role_builder *c, hp_queue_kind kind, int peer, int channel, hp_backend by);
/* Appends a task with its operands, those of its row in plan/program/program_ops.def: -1 where one is absent,
 * also in the place of an EXTRA one. Dependencies and lifetimes follow from what the row says of each.
 * Returns the task's id. */
int lower_task(hp_role_builder *c, hp_task task, const int32_t *operand);
hp_task lower_layer_task(const hp_pass *a, hp_task_op op, int layer, int flags);
void lower_dep(hp_role_builder *c, int task, int on);
/* Puts a task before the first of a list. Returns the list. */
int32_t lower_list_add(hp_arena *arena, hp_lists *l, int32_t task, int32_t list);
/* Keeps a buffer alive up to the task emitted last. */
void lower_touch(hp_role_builder *c, int32_t buffer);
/* Zeroes elements of a buffer. Returns the task. */
int lower_zero(hp_role_builder *c, const hp_pass *a, int layer, int32_t buffer, int64_t first, int64_t elems);

/* lower/lower_compress.c: messages as codecs make them */
/* The codec of messages of this box; 0: sent as they are. */
hp_codec lower_codec(const hp_role_builder *c, hp_traffic traffic, const hp_box *box);
/* A buffer for the code of a box. */
int32_t lower_code(hp_role_builder *c, const hp_pass *a, hp_codec codec, int tensor, const hp_box *box);
/* Encodes all of a buffer. Returns the code. */
int32_t lower_encode(hp_role_builder *c, const hp_pass *a, hp_codec codec, int tensor, int32_t src);
/* Into a buffer of the same box. */
void lower_decode(hp_role_builder *c, const hp_pass *a, int tensor, int32_t dst, int32_t code);
/* The buffer, or what it is the code of, decoded into a new one of that kind. */
int32_t lower_plain(hp_role_builder *c, const hp_pass *a, hp_buffer_kind kind, int tensor, int32_t buffer);
/* Are the sums of a bucket's gradients compressed? Those without a matrix are not factored. */
bool lower_codes_bucket(const hp_role_builder *c, int bucket);
/* Encodes a bucket's gradients once they are final, sums what all members encoded, decodes the sum. Returns
 * the decoding task. */
int lower_reduce_coded(hp_role_builder *c, int bucket);
/* Moves the tasks that encode gradients up to what they wait for. Before memory is placed. */
void lower_hoist_codes(hp_role_builder *c);

/* lower/lower_choice.c */
/* Sets queue, algorithm and call of a collective over a group, whose type and count are set. */
void lower_collective(hp_role_builder *c, int group, hp_task *t);
/* The same of a collective that does not add. */
void lower_reduction(hp_role_builder *c, int group, hp_reduction reduction, hp_task *t);
/* The same for a collective with a root: straight to it or from it, unless the strategy names another
 * algorithm. Each root has its own communicator. */
void lower_rooted(hp_role_builder *c, int group, int root, hp_task *t);
/* How a task is called that is its root's alone. */
int32_t lower_call_of_root(hp_role_builder *c, int root);

/* lower/sync_local.c */
/* Are replicas updated apart from each other? */
bool lower_is_local(const hp_lower_facts *f);
/* Sums the gradients of a bucket over the replica alone. Returns the task; -1: one rank has them all. */
int lower_local_sum(hp_role_builder *c, int bucket);
/* Averages a bucket's parameters and momentum over all replicas, after the task that updates them. */
void lower_average(hp_role_builder *c, int bucket, int updated);

/* lower/sync_ps.c */
/* The member of its group that serves a bucket; -1: all members update it. */
int lower_server(const hp_role_builder *c, int bucket);
/* Sums the gradients of a bucket at its server. Returns the task. */
int lower_to_server(hp_role_builder *c, int bucket);
/* Sends the server's parameters to all, once the task is done that updates them. */
void lower_from_server(hp_role_builder *c, int bucket, int updated);

/* lower/lower_move.c: boxes from where they are to where they are needed, and their gradients back */
void lower_recv_inputs(hp_role_builder *c, const hp_pass *a);
void lower_send_outputs(hp_role_builder *c, const hp_pass *a);
void lower_recv_gradients(hp_role_builder *c, const hp_pass *a);
void lower_send_gradients(hp_role_builder *c, const hp_pass *a);
/* The input k of a layer (n_layer: the loss), as lower_input gives it: the tensor that this part has, or what
 * an exchange delivers. */
void lower_copy(hp_role_builder *c, const hp_pass *a, int tensor, int32_t dst, int32_t src);
int32_t lower_input(hp_role_builder *c, const hp_pass *a, int layer, int k, int tensor);
/* Exchange of a tensor between the parts of its stage, as soon as it is there; all parts take part. */
void lower_exchange(hp_role_builder *c, const hp_pass *a, int tensor);
/* The box that an exchange brings together around what the part has, if only rows are added to it and the
 * layer that computes the tensor can write into the middle; else NULL. */
const hp_box *lower_room_for_halo(const hp_role_builder *c, const hp_pass *a, int tensor);
/* Adds a gradient with respect to what a layer read to the tensor's. */
void lower_contribute(hp_role_builder *c, const hp_pass *a, int layer, int k, int tensor, int32_t gradient);
/* The adjoint of the exchange: sends strips back, once all readers are done; collects, before the producer.
 */
void lower_return(hp_role_builder *c, const hp_pass *a, int tensor);
void lower_collect(hp_role_builder *c, const hp_pass *a, int tensor);

/* lower/lower_layers.c: the tasks of one pass */
void lower_forward_task(hp_role_builder *c, const hp_pass *a, hp_task t, int32_t y, int32_t save,
                        const int32_t *x, int32_t sums);
void lower_forward(hp_role_builder *c, const hp_pass *a);
void lower_backward(hp_role_builder *c, const hp_pass *a);
void lower_weights(hp_role_builder *c, const hp_pass *a); /* weight gradients that backward left out (zb) */

/* lower/lower_ends.c: what the first stage reads and the last one writes */
/* Loads image and labels where this part needs them. Returns the labels' buffer or -1. */
int32_t lower_load(hp_role_builder *c, const hp_pass *a);
void lower_loss(hp_role_builder *c, const hp_pass *a, int32_t labels);
/* Hands out what a deployed network computes. */
void lower_store(hp_role_builder *c, const hp_pass *a);

/* lower/stream.c: layers 1 .. end-1 strip by strip */
/* The segment's end: at most `units` units, up to the first layer that reads a whole map (on tiles of some
 * columns: whole rows). 0: none. */
int lower_stream_end(const hp_graph *g, const hp_strategy *s, int units);
void lower_streamed(hp_role_builder *c, const hp_pass *a, int end);

/* lower/lower_groups.c: slots, communicators */
void lower_slots(hp_program_builder *b);
void lower_groups(hp_program_builder *b);
/* Does the role compute something of that layer with that orientation? */
bool lower_runs(const hp_program_builder *b, int role, int vstage, int layer, int flip);
/* Parts with the same slice number hold the same weights: a channel slice of a branch, and for a layer that
 * tensor-parallel ranks split, one of its slices. */
static inline int lower_slices(const hp_lower_facts *f) {
    return f->s->cp * f->s->tp * f->s->bp;
}
int lower_slice(const hp_lower_facts *f, int part, bool split);
static inline bool lower_is_split(const hp_lower_facts *f, int layer) {
    return f->g->tensor[f->g->layer[layer].out].tp_unit > 0;
}
/* Who holds the weights of a virtual stage's layers, whole or split, that the part has. -1: it alone. */
int lower_weight_group(const hp_program_builder *b, int vstage, int part, bool split);
/* The replica, among those with shares of their own, that a part of a virtual stage belongs to. */
int lower_share_of(const hp_lower_facts *f, int vstage, int part);
/* Who adds up the statistics of a batch norm: the parts of a replica that hold the same weights. -1: one
 * alone. */
int32_t lower_sync_group(const hp_program_builder *b, int vstage, int part, int flip);
/* The members of a group that holds weights that belong to one replica (sync=local); -1: one rank alone. */
int lower_replica_group(const hp_program_builder *b, int group);

/* lower/params.c: where parameters lie, buckets */
void lower_params(hp_role_builder *c);
/* The role's first slot of a virtual stage; -1: it takes no part. */
int lower_slot_of(const hp_role *r, int vstage);

/* lower/lower_packs.c */
void lower_packs(hp_role_builder *c);
/* Packs a layer's weights out of a block; -1: the device reads them as they are. */
int32_t lower_pack(hp_role_builder *c, int slot, int layer, bool backward, int32_t params);

/* lower/blocks.c: buckets of which a rank keeps its part alone (ZeRO) */
void lower_new_blocks(hp_role_builder *c);
/* The layer with whose parameters a layer's lie: itself, or for tied layers the first that the role runs,
 * whose gradients are the last to be final. */
static inline int lower_holder(const hp_role_builder *c, int layer) {
    return c->params.holder[layer];
}
/* The bucket of a layer's parameters; -1: it has none here. */
int lower_bucket(const hp_role_builder *c, int layer);
/* A collective over all of a bucket, in a fixed buffer; how it is called is still to be set. */
hp_task lower_bucket_sum(const hp_role_builder *c, hp_task_op op, int bucket);
/* A task of the compute queue about all of a bucket. */
hp_task lower_bucket_task(const hp_role_builder *c, hp_task_op op, int bucket);
/* A collective over those who hold a bucket, within a fixed buffer or a block; -1: nobody else does. */
int lower_bucket_collective(hp_role_builder *c, hp_task_op op, int bucket, int32_t buffer);
/* Before a layer's tasks, on all parts of its stage: its bucket comes together. */
void lower_open(hp_role_builder *c, int layer, bool backward);
/* Where a task finds the layer's parameters, and its pack for the direction; -1: where the role keeps
 * them. */
typedef struct hp_params_at {
    int32_t params, pack;
} hp_params_at;
hp_params_at lower_params_at(hp_role_builder *c, const hp_pass *a, int layer, bool backward);
/* Ends a pass: gathered blocks are not needed any more. */
void lower_give_back(hp_role_builder *c);
/* Where a task writes the layer's gradients; -1: where the role keeps them all. */
int32_t lower_grads_at(hp_role_builder *c, const hp_pass *a, int layer);
/* After the backward pass of a layer that is its bucket's last: sends the gradients to those who update
 * them. */
void lower_scatter(hp_role_builder *c, const hp_pass *a, int layer);
/* After the last backward pass. */
void lower_scattered(hp_role_builder *c);

/* lower/lower_update.c: reductions, optimiser, metrics */
/* Waits for the last gradients of the bucket's layers. */
void lower_after_gradients(hp_role_builder *c, int task, int bucket);
/* Plans what a task needs that sums into the metric. */
void lower_metric_scratch(hp_role_builder *c);
void lower_update(hp_role_builder *c);

/* lower_memory.c: lifetimes -> offsets; adds the dependencies that reuse needs; sets arena_bytes and
 * live_bytes */
void hp_memory_place(hp_role_builder *c);
/* memory_size.c: places all buffers after the fixed ones, from `from` on, if that ends before `best`;
 * returns the end. */
int64_t hp_memory_by_size(hp_arena *arena, hp_role *r, int64_t from, int64_t best);

#endif
