/* framework.h - what a deep-learning framework does beyond the kernels of hplan's plans: its separate
 * kernels, the host time of each, and the units in which it multiplies.
 *
 * `--as` predicts the time under such a framework; without it, a plan is hplan's own. Every figure has a
 * source; rates fitted to published totals are marked so. */
#ifndef HP_FRAMEWORK_H
#define HP_FRAMEWORK_H

#include "costmodels/table.h"
#include "networks/graph/optimizer.h"
#include "machines/machine.h"
#include "plan/program/work.h"

enum { HP_FRAMEWORK_ROWS = 4 };

/* Time of the host, in which a device may be idle. */
typedef struct hp_framework_host {
    double dispatch_s; /* for an operation that starts a kernel */
    double module_s;   /* for one that a Python module starts, in the forward pass; 0: as others */
    double region_s;   /* for one on a processor: a parallel region of its cores; 0: as dispatch_s */
    double step_s;     /* before the first kernel of a step, never hidden; 0: none */
    double update_ops[HP_OPTIMIZERS]; /* operations of the optimiser for every trained tensor */
    double sum_ops;                   /* more of them if its gradient is summed over ranks */
    double cycle_s; /* between checks for gradients that are ready to be summed; 0: hooks start the sums */
    /* waits for the device to know whether scaled gradients are finite, before it starts the update */
    bool reads_finite;
    double message_ops; /* operations at each end of a message, the device being idle */
    /* those of message_ops that the framework's code shows; a publication's measurements give the rest */
    double message_ops_read;
} hp_framework_host;

typedef struct hp_framework_kernels {
    bool fuses;          /* norms, activations and additions go with the kernel before them */
    bool unfolded;       /* norms of inference are kernels of their own */
    bool tf32;           /* convolutions of float32 are multiplied in tf32 where a device can */
    bool channels_first; /* matrix units want channels last: maps are transposed around a convolution */
    bool winograd;    /* 3x3 convolutions of stride 1 in float32 and their inputs' gradients multiply less */
    bool autocast;    /* in 16 bits norms, softmax and losses are float32, and products read casts */
    bool no_int8;     /* no product of bytes on GPUs */
    bool norm_blocks; /* a batch norm in training has a thread block for each channel */
    /* a block sums a layer norm's gradients of so many channels over all tokens; 0: one kernel does all */
    int column_channels;
    /* how often the optimiser's kernels read or write an array of all parameters; 0: one kernel, each once */
    double update_passes[HP_OPTIMIZERS];
    int vector; /* maps of bytes have a multiple of so many channels; 0: as many as they have */
} hp_framework_kernels;

typedef struct hp_framework_memory {
    bool eager;      /* keeps every saved tensor until its backward pass */
    bool blocks;     /* allocates as PyTorch: hp_framework_block */
    bool half_model; /* in 16 bits all parameters are, and their gradients, beside the optimizer's float32 */
    bool copies_gradients; /* into buckets, where they are summed over ranks */
    /* writes what it received into a map, filled with zeros before; its gradient is then copied for each */
    bool pastes;
    double context_bytes; /* on a GPU before any tensor; 0: that of other frameworks of its kind */
} hp_framework_memory;

typedef struct hp_framework_attention {
    bool stores_scores; /* all of them, from softmax to its backward pass */
    bool again;         /* recomputes them for that pass instead of keeping them */
    bool drops;         /* a mask of bytes for softmax's output and for what is added to the residual */
    /* how often stored scores are read or written: forward, backward; 0: blocks stay on the device */
    double score_passes[2];
    double score_passes_autocast[2]; /* the same of 16 bits under autocast: softmax is of float32 */
    /* its one kernel takes bias and mask of windows as one array as large as the scores, made before it */
    bool makes_masks;
    double head_copies; /* of a map around attention: queries, keys, values, result; 0: nor of windows */
    /* parts of a layer sum all tokens (all-reduce) where hplan scatters summands and gathers tokens, and
     * each norms and adds all of them */
    bool sums_tokens;
} hp_framework_attention;

typedef struct hp_framework {
    const char *name; /* "pytorch-1.13" */
    bool infers;      /* and does not train */
    hp_framework_host host;
    hp_framework_kernels kernels;
    hp_framework_memory memory;
    hp_framework_attention attention;
    /* cost tables: the first precedes the others, all precede hplan's; ends with a NULL */
    const char *rows[HP_FRAMEWORK_ROWS];
    const char *layout; /* layout of its maps and kernels, in words: "channels first" */
    const char *source; /* sources of the figures, in words */
} hp_framework;

/* The frameworks, ended by a name of NULL. */
extern const hp_framework hp_frameworks[];
/* Returns NULL if `name` is NULL or "hplan". Errors: HP_EUSAGE, with the names. */
hp_status hp_framework_find(const char *name, const hp_framework **f, hp_error *err);

/* The table with the framework's rows before its own. Lives in `arena`. */
hp_cost_table *hp_framework_table(hp_arena *arena, const hp_framework *f, const hp_cost_table *t);

/* Additional kernels beside the layer's own, and the bytes that they move. */
typedef struct hp_framework_passes {
    int kernels;
    double bytes;
} hp_framework_passes;
hp_framework_passes hp_framework_passes_of(const hp_framework *f, const hp_machine *m, const hp_graph *g,
                                           hp_dtype dtype, const hp_work_case *c);
/* Changes the work's key to the units in which the framework multiplies. */
void hp_framework_units(const hp_framework *f, const hp_machine *m, hp_work *w);
/* Subtracts the multiplications that its convolution saves and what its norm does not read; adds those of
 * scores that are masked afterwards. Call it after hp_framework_units. */
void hp_framework_amounts(const hp_framework *f, const hp_machine *m, const hp_graph *g, hp_dtype dtype,
                          const hp_work_case *c, hp_work *w);
/* Adds the padding channels of a vector, which are also moved and multiplied. */
void hp_framework_pad(const hp_framework *f, const hp_machine *m, const hp_graph *g, const hp_work_case *c,
                      hp_work *w);
/* Factor for the bytes that one kernel would move to update all parameters. */
double hp_framework_update_factor(const hp_framework *f, const hp_graph *g);
/* Device memory that an allocation takes, in bytes. */
int64_t hp_framework_block(const hp_framework *f, int64_t bytes);
/* Number of thread blocks of the layer's kernel if it is too small for some devices; 0: no limit. */
int hp_framework_blocks(const hp_framework *f, const hp_machine *m, const hp_graph *g, const hp_work_case *c);
/* Number of thread blocks of a kernel that sums a layer norm's gradients of scale and shift; 0: none. */
int hp_framework_column_blocks(const hp_framework *f, const hp_machine *m, const hp_graph *g,
                               const hp_work_case *c);

/* Number of attention scores that a framework stores: all queries by all keys, including future ones, for
 * each head. */
double hp_framework_scores(const hp_graph *g, const hp_work_case *c);

/* How many numbers describe it: parameters that could have been fitted, were it not for their sources. Flags
 * do not count. */
int hp_framework_numbers(const hp_framework *f);

#endif
