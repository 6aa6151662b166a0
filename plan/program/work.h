/* work.h - the sizes of a layer's task as its operands' boxes give them: tasks with equal sizes take equally
 * long, wherever their boxes lie, so that tiles, micro-batches and candidates share what was looked up once.
 */
#ifndef HP_WORK_H
#define HP_WORK_H

#include "plan/program/program.h"

/* The cost of a task depends on this alone. */
typedef struct hp_work {
    /* Shape class without the size, "fwd.conv k3x3 s1 d1 g1 i64 o64 f32 w56". The last word is the length of
     * a row of the map (linear: of the weights): kernels work row by row, so short rows cost more per
     * element. Layers only. */
    char key[80];
    double size; /* the class's size axis: output pixels x samples; elements; bytes for send and all-reduce */
    double flops; /* floating-point operations of the task */
    double bytes; /* memory traffic: each operand is read and written once */
    /* Matrix product: rows and columns of the result, such as pixels and channels, and the length of its
     * sums; 0: no product. */
    double rows, cols, depth;
    /* Attention: "attention" or "causal"; else NULL. rows: queries of a head (in a window); cols: its
     * channels; depth: mean number of keys per query; groups: heads and windows, over all samples. */
    const char *attends;
    double groups;
    double products;   /* attention's matrix products: 2 forward, 5 backward */
    double kept_bytes; /* part of `bytes`: keys and values */
    const char
        *factors; /* type that is multiplied where tensors are stored in another; NULL: as the key says */
    bool library; /* by a framework's kernels, whatever was measured of hplan's own */
    /* Rate class within the operation: a plain matrix product ("dense"), with rows that are not a multiple of
     * 16 bytes ("odd"); attention with a bias ("biased"); a convolution of an image's few channels, in
     * inference (hp_rates_stem). NULL: the operation's own. */
    const char *rates;
    /* Part of `bytes`: passes before the layer's kernel, which quantise its input at run time. */
    double passes;
} hp_work;

extern const char *const hp_rates_stem;

/* Assumed for a processor without measurements: the ridge of a 2020s device lies between 5 and 50. */
#define HP_MACS_PER_BYTE 10.0

hp_work hp_task_work(const hp_program *p, const hp_graph *g, const hp_role *r, int task);

typedef struct hp_work_case {
    int32_t layer; /* -1: copies and sums, which are not a layer's: in_elems alone, bytes of an accum */
    uint8_t op, eval;
    uint8_t sums;         /* batch norm with statistics that come from elsewhere; of a copy: it adds */
    uint8_t dtype;        /* copy, accum: type of the elements moved */
    int32_t in[HP_AXES];  /* box of the first input that the task reads, or whose gradient it writes */
    int32_t out[HP_AXES]; /* box of the output; stats: of the pixels that are counted */
    int64_t in_elems;     /* all inputs together */
    int64_t stored_elems, stored_bytes; /* part of in_elems that is not in the program's dtype */
    int64_t pairs;                      /* attention: of queries and keys, of all samples and one head */
    int64_t run_bytes;                  /* copy: bytes contiguous in both buffers, rounded as in its key */
} hp_work_case;

/* The sizes of a task that occurs many times: fwd, bwd, bwdw, stats, bstats, copy, accum; false for others.
 * The case has no padding: it may be compared and hashed as bytes. */
bool hp_work_case_of(const hp_program *p, const hp_graph *g, const hp_role *r, int task, hp_work_case *c);
/* The sizes of such a task between the output's box and what it needs, without a program. */
hp_work_case hp_work_case_at(const hp_graph *g, int layer, hp_task_op op, const hp_box *out);

/* Number of elements of a box with these lengths. */
double hp_work_elems(const int32_t length[HP_AXES]);

/* A gradient of so many elements added to another. */
hp_work hp_work_of_sum(hp_dtype dtype, double elems);
hp_work hp_work_of_case(const hp_graph *g, hp_dtype dtype, const hp_work_case *c);
/* The same without its key, the text of which takes longer than all else. */
hp_work hp_work_amounts(const hp_graph *g, hp_dtype dtype, const hp_work_case *c);

#endif
