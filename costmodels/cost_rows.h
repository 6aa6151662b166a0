/* cost_rows.h - the rows of a cost table: built by the parser and by calibrate, looked up by the models. */
#ifndef HP_COST_ROWS_H
#define HP_COST_ROWS_H

#include "costmodels/table.h"
#include "plan/program/work.h"

typedef enum hp_row_kind {
    HP_ROW_ATTEND, /* in alphabetical order: rows are sorted by kind, class, key */
    HP_ROW_BLOCK,
    HP_ROW_COLLECTIVE,
    HP_ROW_COMPUTE,
    HP_ROW_EFFICIENCY,
    HP_ROW_ERROR,
    HP_ROW_FIT,
    HP_ROW_JITTER,
    HP_ROW_LINK,
    HP_ROW_P2P,
    HP_ROW_PATH,
    HP_ROW_REGIME,
    HP_ROW_SHARE,
    HP_ROW_STAGE,
    HP_ROW_TILE,
    HP_ROW_UNITS,
    HP_ROW_YARDSTICK,
    HP_ROW_KINDS
} hp_row_kind;

enum { HP_ROW_FIELDS = 13 };
typedef struct hp_row_info {
    const char *name;
    const char *field[HP_ROW_FIELDS]; /* names of the values; {NULL}: increasing numbers (a line) */
    int required;      /* number of required fields; those missing in older versions are 0; 0: all are
                        * required */
    unsigned positive; /* bits of fields that divide or bound, and so must be greater than 0 */
} hp_row_info;
extern const hp_row_info hp_row_infos[HP_ROW_KINDS];

/* --- fields of rows that are not lines --- */
/* Fit: seconds, flop/s, bytes/s (0: no such term). Ranges of the samples: sizes in bytes, arithmetic
 * intensities in flop/B, and the fastest rate in flop/s; MOST 0: unknown. */
enum {
    HP_FIT_LAUNCH,
    HP_FIT_FLOPS,
    HP_FIT_BYTES,
    HP_FIT_LEAST,
    HP_FIT_MOST,
    HP_FIT_INTENSITY_LEAST,
    HP_FIT_INTENSITY_MOST,
    HP_FIT_FASTEST,
    HP_FIT_FIELDS
};
enum { HP_EFFICIENCY_FLOPS, HP_EFFICIENCY_BYTES }; /* fractions of the data sheet's rates */
/* Link: fractions of the data sheet's latency and rate; the data-sheet rate in bytes/s of the link on which
 * the class's rows were measured (0: the machine's). */
enum { HP_LINK_LATENCY, HP_LINK_BANDWIDTH, HP_LINK_RATE };
/* Matrix product on a GPU (tiles.h): its tile. For a library's kernel, also fractions of the data sheet's
 * rates (FLOPS 0: unknown) and the fields of kernel.h. */
enum {
    HP_TILE_ROWS,
    HP_TILE_COLS,
    HP_TILE_LEAST,
    HP_TILE_PENALTY,
    HP_TILE_FILL,
    HP_TILE_DEPTH,
    HP_TILE_SPLIT,
    HP_TILE_FLOPS,
    HP_TILE_BYTES,
    HP_TILE_LAUNCH,
    HP_TILE_POWER,
    HP_TILE_CACHE,
    HP_TILE_CACHED
};
/* Fused attention on a GPU (attention.h). MOVED: how often a forward pass moves keys and values. */
enum {
    HP_ATTEND_ROWS,
    HP_ATTEND_PENALTY,
    HP_ATTEND_FILL,
    HP_ATTEND_SOFTMAX,
    HP_ATTEND_MOVED,
    HP_ATTEND_FLOPS,
    HP_ATTEND_BYTES,
    HP_ATTEND_LAUNCH,
    HP_ATTEND_POWER,
    HP_ATTEND_CACHE,
    HP_ATTEND_CACHED
};
/* Number of multiprocessors of a device. */
enum { HP_UNITS_COUNT };
/* Back end: seconds per operation; bytes/s of copies to and from the host around it (0: none). Between ranks
 * of a node: bytes/s and seconds of a message through host memory instead of the link (0: over the link). */
enum { HP_PATH_LATENCY, HP_PATH_COPIES, HP_PATH_HOST, HP_PATH_HOP };

/* Message of an MPI library between GPUs (comm_mpi.c): largest size in bytes (0: any); seconds including the
 * link's; bytes/s of copies before and after the wire (0: none); if only the first of several pipelined
 * blocks is copied so, its bytes (0: the whole message), and the slowest stage in bytes/s (0: the link). */
enum { HP_REGIME_MOST, HP_REGIME_LATENCY, HP_REGIME_COPIES, HP_REGIME_BLOCK, HP_REGIME_STAGE };
/* Collective through host memory: largest size in bytes (0: any), seconds of its copies, bytes/s to the host
 * and back. */
enum { HP_STAGE_MOST, HP_STAGE_LATENCY, HP_STAGE_OUT, HP_STAGE_BACK };

/* Yardstick: seconds on the quiet machine; mean seconds over the calibration; relative standard deviation of
 * means over a few seconds, by which one run differs from another. */
enum { HP_YARDSTICK_QUIET, HP_YARDSTICK_MEAN, HP_YARDSTICK_SPREAD };
/* Compute task: coefficient of variation of a core's speed, its correlation time in seconds, and the
 * coefficient of variation of each task by itself. */
enum { HP_JITTER_CV, HP_JITTER_TAU, HP_JITTER_TASK };

typedef struct hp_row {
    hp_row_kind kind;
    const char *class, *key;
    hp_source source;
    double residual; /* relative half-width of the interval */
    int64_t samples;
    const char *where; /* the source, as text */
    int n;
    double *x, *y; /* x: the line's sizes, or 0, 1, 2 for fields */
} hp_row;

struct hp_cost_table {
    hp_arena *arena;
    char machine[64], date[16];
    char processor[128];         /* the measured processor; "" if unknown */
    char driver[64], status[16]; /* for GPUs, else "" */
    const char *origin;
    hp_speed speed; /* that costs are for */
    int outdated;   /* number of rows of an older version that were left out */
    int n, capacity;
    hp_row *row;               /* sorted after hp_rows_sort */
    const hp_cost_table *base; /* consulted if this table has no row; NULL */
};

/* An empty table. Lives in `arena`. */
hp_cost_table *hp_rows_new(hp_arena *arena, const char *machine, const char *date);
/* Appends a copy of the row. */
void hp_rows_add(hp_cost_table *t, const hp_row *row);
/* Compares kind, class and key, as strcmp. */
int hp_row_order(const hp_row *a, const hp_row *b);
/* Sorts rows by it; needed before looking any up. */
void hp_rows_sort(hp_cost_table *t);
/* Adds the rows of `before` (NULL: none) that the table lacks, and sorts. */
void hp_rows_keep(hp_cost_table *t, const hp_cost_table *before);
/* Finds the row; NULL if none. Class "*" of the base tables matches every class. Cost: a binary search. */
const hp_row *hp_rows_find(const hp_cost_table *t, hp_row_kind kind, const char *class, const char *key);

/* Searches this table without its bases: a row of the device's class, then of the class that it is like, then
 * of any class. */
const hp_row *hp_row_of_class(const hp_cost_table *t, hp_row_kind kind, const hp_device_class *d,
                              const char *key);

/* A task's duration from the measured rows of its shape class. */
typedef struct hp_measured_line {
    double seconds;
    double octaves;    /* octaves between its row length and that of `row` */
    double outside;    /* octaves to the nearest measured size; 0: among them */
    const hp_row *row; /* the row that it mainly depends on */
} hp_measured_line;

/* Time of a task with `key` (hp_work.key) at `size`, from the line of its row length. Otherwise interpolates
 * in logarithms between the lines of the nearest shorter and longer rows. Returns false if its shape class
 * has no row. */
bool hp_rows_compute(const hp_cost_table *t, const char *class, const char *key, double size,
                     hp_measured_line *out);

/* Length of a key without its last word " wN". *width (may be NULL) becomes N, or 0 if there is none. */
int hp_key_class(const char *key, int *width);

/* First word and type of a key: "fwd.conv f32" from "fwd.conv k3x3 ... f32 w56". `out` holds n bytes. */
const char *hp_key_family(const char *key, char *out, size_t n);
/* The family for fits: "fwd.conv.grouped f32" for "fwd.conv k3x3 s1 d1 g96 ...". Grouped convolutions reuse
 * little of what they read and reach a fraction of the others' rates. */
const char *hp_key_fit(const char *key, char *out, size_t n);

/* The key of a collective's row: "allreduce own.ring r8 n4", "allreduce nccl r8 n8", "broadcast r8 n8".
 * Returns `out`. */
enum { HP_COLLECTIVE_KEY = 80 };
const char *hp_collective_key(const hp_collective_call *c, char out[HP_COLLECTIVE_KEY]);
/* Parses a key; false if it is not one. */
bool hp_collective_of_key(const char *key, hp_collective_call *c);

/* What a GPU's figures are based on: "never run", "one GPU", "cluster"; ends with NULL. */
extern const char *const hp_gpu_statuses[];

/* Converts text to a table and back; `where` names the file in errors (HP_EDATA, with the line). */
hp_status hp_rows_parse(hp_arena *arena, const char *text, const char *where, hp_cost_table **t,
                        hp_error *err);
/* exact: prints every digit; otherwise rounded for readers. */
hp_status hp_rows_print(FILE *f, const hp_cost_table *t, bool exact, hp_error *err);
/* Writes "path.tmp" and renames it. Errors: HP_ECREATE, HP_EIO; an earlier file survives. */
hp_status hp_rows_write(const hp_cost_table *t, const char *path, hp_error *err);

/* Text of data/shipped.cost: devices and links that were not measured on this machine. */
const char *hp_shipped_table(void);

#endif
