/* import_text.h - inside of import: a text in parts, each of which one tool wrote. */
#ifndef HP_IMPORT_TEXT_H
#define HP_IMPORT_TEXT_H

#include "costmodels/tuning/import.h"

enum { IMPORT_UNKNOWN = -2, IMPORT_MESSAGES = -1 /* else hp_collective */ };

/* One measured time. */
typedef struct import_point {
    hp_row_kind kind;
    hp_collective_call call;
    double bytes, seconds;
    bool predicted;             /* by hplan: nothing ran */
    const char *where, *source; /* "FILE line N"; who measured, when */
} import_point;

/* What the lines that follow are of, as far as the text has said it. */
typedef struct import_section {
    int op;
    bool left_out; /* it is of no operation that hplan has */
    bool gpus;     /* between the memories of GPUs, not of hosts */
    hp_wire by;
    hp_algorithm algorithm;     /* that the back end ran; LIBRARY: not said */
    char tool[80], library[48]; /* "nccl-tests 2.17.6", "NCCL 2.26.2" */
    int32_t ranks;              /* that the text names; 0: none yet */
    int n_host;
    char host[64][64]; /* the last is that of the newest rank */
    int32_t on_host[64];
} import_section;

struct hp_import {
    hp_arena *arena;
    hp_import_options o;
    const char *where, *date;
    int line;
    const struct import_tool *tool;
    import_section s;
    int column[8]; /* the tool's own, of its table */
    bool table;    /* a table has begun */
    char left_out[200];
    int n, capacity;
    import_point *point;
};

/* A tool whose output is understood. */
typedef struct import_tool {
    bool (*begins)(const char *line); /* is this one of its lines before a table? */
    hp_status (*line)(hp_import *i, char *line, hp_error *err);
    const char *(*title)(
        const char *line);       /* where the title of its tables begins in the line; NULL: it has none */
    const char *const *comments; /* how its other lines of interest begin after their '#'; ends in NULL */
} import_tool;
extern const import_tool hp_import_nccl_tests, hp_import_osu;

/* A text in lines, without what a log put before them. */
typedef struct import_lines {
    char **line;
    int n;
    const char *form[16]; /* of what stood before titles */
    int n_form;
} import_lines;
/* tools: ends in NULL. */
import_lines hp_import_lines(hp_arena *arena, const char *text, const import_tool *const *tools);

/* A comment of `hplan bench comm`; others are passed over. */
hp_status hp_import_hplan(hp_import *i, const char *line, hp_error *err);
/* Sets c->algorithm: the text's, the option's, or that of the rule for so many bytes by which hplan's back ends choose. */
hp_status hp_import_algorithm(const hp_import *i, hp_collective_call *c, double bytes, hp_error *err);

/* "FILE line N: what: 'text'". */
hp_status hp_import_bad(const hp_import *i, const char *what, const char *text, hp_error *err);
/* Adds a time at so many bytes of the whole data. */
hp_status hp_import_add(hp_import *i, double bytes, double seconds, hp_error *err);
/* Number of ranks, from the text or the option. Errors: neither says it. */
hp_status hp_import_ranks(const hp_import *i, int32_t *ranks, int32_t *per_node, hp_error *err);
/* hp_collective of a name as tools write it: "all_reduce", "All-to-All"; IMPORT_MESSAGES: "sendrecv"; else
 * IMPORT_UNKNOWN. */
int hp_import_find(const char *name);
/* A test that is not understood: its lines are passed over, and it is said. */
void hp_import_leave_out(hp_import *i, const char *name);

/* Cuts a line at its blanks; returns how many words. */
int hp_import_words(char *line, char **word, int most);
/* A number and nothing else. */
bool hp_import_number(const char *word, double *value);

#endif
