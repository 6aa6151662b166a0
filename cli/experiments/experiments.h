/* experiments.h - internals of `experiments`: published figures as text files (docs/experiments.md), the
 * predictions of `simulate` for their set-ups, and the errors. */
#ifndef HP_EXPERIMENTS_H
#define HP_EXPERIMENTS_H

#include "cli/experiments/scores.h"
#include "cli/options/simulate.h"
#include "costmodels/framework/framework.h"

typedef enum experiment_measure {
#define MEASURE(name) EXPERIMENT_##name,
#define WORD(name)    EXPERIMENT_##name,
#include "cli/experiments/measures.def"
#undef MEASURE
#undef WORD
    EXPERIMENT_MEASURES,
    EXPERIMENT_FIRST_WORD = EXPERIMENT_outcome
} experiment_measure;
extern const char *const experiment_measure_names[]; /* ends with NULL */

typedef enum experiment_kind {
    EXPERIMENT_NONE, /* a run to which other rows refer */
    EXPERIMENT_EXACT,
    EXPERIMENT_POINT,
    EXPERIMENT_BAND,
    EXPERIMENT_SIGN, /* ratio: above or below 1; word: the same one */
    EXPERIMENT_KINDS
} experiment_kind;
extern const char *const experiment_kind_names[]; /* ends with NULL */

typedef struct experiment_row {
    int line;
    const char *name;
    bool runs; /* has options of its own */
    simulate_options options;
    const char *missing; /* why it is not simulated; NULL: it is simulated */
    int first, second;   /* rows of the same file whose figure, or ratio, it is; -1: none */
    bool has_figure;
    experiment_measure measure;
    double low, high; /* published; equal except for bands */
    const char *word; /* published value of a word measure */
    experiment_kind kind;
    bool used;         /* used for rows of the shipped table that cite the file */
    const char *group; /* group whose best row was published; NULL: none */
    bool best;         /* it is that one */
    const char *note;
} experiment_row;

typedef struct experiment_file {
    const char *name, *path;
    const char *source, *what, *setup, *section;
    const char
        *cited; /* words by which rows of the shipped table, or frameworks and their rows, cite it; NULL: none
                * does */
    const char *all; /* options of every row */
    int in_table;    /* number of citing rows of these tables; a framework counts as one */
    int n, capacity;
    experiment_row *row;
} experiment_file;

typedef struct experiment_book {
    int n, capacity;
    experiment_file *file;
} experiment_book;

/* Finds the directory: `folder` if given, otherwise the installation's, the sources', or ./experiments.
 * Errors: HP_EDATA. */
hp_status experiment_folder(hp_arena *arena, const char *folder, const char **found, hp_error *err);
/* Reads the files of these names, or all. Errors: HP_EUSAGE (no such name), HP_EDATA (with file and line). */
hp_status experiment_read(hp_arena *arena, const char *folder, const char *const *name, int n_name,
                          experiment_book *book, hp_error *err);
/* Parses one file; modifies its text. Errors: HP_EDATA. */
hp_status experiment_parse(hp_arena *arena, char *text, experiment_file *f, hp_error *err);
/* Parses one row from a line. Errors: HP_EDATA. */
hp_status experiment_parse_row(hp_arena *arena, char *line, int number, experiment_file *f, hp_error *err);
/* Strips blanks at both ends; `text` is modified. */
char *experiment_trim(char *text);

/* The costs by which experiments are predicted. */
typedef struct experiment_costs {
    bool roofline; /* peak rates of the data sheets and nothing else */
    const char *const
        *without; /* ignores rows that cite these, in the machine's and the frameworks' tables; NULL: uses all
                  * rows */
    int n_without;
} experiment_costs;
/* Applies the costs to a set-up. */
hp_status experiment_use_costs(hp_arena *arena, const experiment_costs *c, simulate_setup *s, hp_error *err);
/* Number of rows of the shipped and the frameworks' tables that cite any of these; frameworks' own numbers
 * count as one. */
hp_status experiment_cited(hp_arena *arena, const char *const *cited, int n, int *rows, hp_error *err);

/* Results for one row's options. NAN, NULL: unknown. */
typedef struct experiment_run {
    double figure[EXPERIMENT_FIRST_WORD];
    double step_low, step_high; /* ends of the step's 90 % interval, relative to the step; 0: unknown */
    const char *outcome, *family;
    char why[256]; /* there is not all */
} experiment_run;
/* Time from the first row that a rank copies for another until its last halo arrives, for the slowest rank;
 * NAN: no exchanges. Errors: HP_EPLAN. */
hp_status experiment_exchange(hp_arena *arena, hp_eval *e, const hp_evaluation *v, double *seconds,
                              hp_error *err);

/* Which rows are wanted. */
typedef struct experiment_filter {
    const experiment_file *file; /* file of the rows; NULL: any file, with */
    size_t at;                   /* byte of simulate_options: an option as text */
    const char *value;           /* value of that option */
} experiment_filter;
bool experiment_wants(const experiment_filter *w, const experiment_file *f, const experiment_row *row);
/* The row whose options apply to a row's figure; for a ratio, the first one. */
const experiment_row *experiment_origin(const experiment_file *f, const experiment_row *row);

/* The runs of every file and row: run[file][row]. */
experiment_run **experiment_evaluate_all(hp_arena *arena, const experiment_book *b, const experiment_costs *c,
                                         const experiment_filter *w);

typedef enum experiment_verdict { EXPERIMENT_OPEN, EXPERIMENT_MISS, EXPERIMENT_HIT } experiment_verdict;

/* A prediction beside the published figure. */
typedef struct experiment_result {
    double value;     /* NAN: none */
    const char *word; /* NULL: none */
    double error;     /* relative; NAN: none */
    experiment_verdict verdict, sign;
    const char *why; /* there is none; "" */
} experiment_result;
experiment_result experiment_judge(const experiment_file *f, int row, const experiment_run *run);

/* Counts and errors by kind, with points of memory separate. */
enum { EXPERIMENT_MEMORY = EXPERIMENT_KINDS, EXPERIMENT_CLASSES };
typedef struct experiment_count {
    int rows, known, hit;
    int used, unused; /* known ones on which the table rests, and the others */
    double error, error_unused;
} experiment_count;
typedef struct experiment_tally {
    experiment_count of[EXPERIMENT_CLASSES];
    int signs, right; /* over all ratios, whatever their kind */
} experiment_tally;
bool experiment_is_point_of_time(const experiment_row *row);
void experiment_add(experiment_tally *t, const experiment_file *f, const experiment_row *row,
                    const experiment_result *r);
double experiment_mean(double sum, int n); /* NAN of none */

/* Whether the best published strategy of several is also predicted to be the best. */
typedef struct experiment_ranking {
    const experiment_file *file;
    const char *group;
    const experiment_row *published, *predicted, *roofline; /* NULL: not known */
    bool data, spatial;                                     /* it is plain data parallelism; it has tiles */
} experiment_ranking;
int experiment_rank(hp_arena *arena, const experiment_book *b, experiment_run *const *run,
                    experiment_run *const *roofline, experiment_ranking **list);

/* The time points of a file, or of all files. */
typedef struct experiment_group {
    const char *name; /* the file's, "all" */
    int points, used, hit;
    double error; /* sum */
    double tau;   /* for ten rates or more, published against simulated; NAN: fewer, or several files */
    score_coverage coverage;
} experiment_group;
experiment_group experiment_group_of(int n, const experiment_file *f, experiment_run *const *run);
/* One entry for each file with points. */
int experiment_groups(hp_arena *arena, const experiment_book *b, experiment_run *const *run,
                      experiment_group **list);

/* Points of one network, machine, image size or file, predicted with and without the table rows that rest on
 * it. */
typedef struct experiment_left_out {
    const char *value;
    int points, n_without;
    double with, without, roofline;
} experiment_left_out;
/* "net", "machine", "image", "group" (each file). Errors: HP_EUSAGE. */
typedef struct experiment_dimension experiment_dimension;
hp_status experiment_find_dimension(const char *name, const experiment_dimension **d, hp_error *err);
int experiment_leave_out(hp_arena *arena, const experiment_book *b, const experiment_dimension *d,
                         experiment_run *const *run, experiment_run *const *roofline,
                         experiment_left_out **list);

/* A framework, and its points of time and memory. */
typedef struct experiment_profile {
    const hp_framework *framework;
    int points, hit;
    double error; /* sum */
} experiment_profile;
/* Lists the frameworks with points. */
int experiment_profiles(hp_arena *arena, const experiment_book *b, experiment_run *const *run,
                        experiment_profile **list);

/* Everything that `hplan experiments` reports. */
typedef struct experiment_report {
    const experiment_book *book;
    experiment_run **run, **roofline;
    experiment_tally tally, tally_roofline;
    int cited; /* number of table rows taken from any of these files; a framework counts as one */
    int n_group, n_profile, n_ranking, n_left_out;
    experiment_group *group, of_time; /* one each, and all */
    experiment_profile *profile;
    experiment_ranking *ranking;
    const char *left_out_by; /* NULL: nothing was */
    experiment_left_out *left_out;
} experiment_report;
void experiment_print(const experiment_report *r);
json_t *experiment_json(const experiment_report *r);
void experiment_print_list(const experiment_book *b);
json_t *experiment_json_list(const experiment_book *b);

#endif
