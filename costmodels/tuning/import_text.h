/* import_text.h - internals of import: a text in parts, each written by one tool. */
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
    const char *where, *source; /* "FILE line N"; who measured and when */
} import_point;

/* What the following lines measure, as far as the text has said. */
typedef struct import_section {
    int op;
    bool left_out; /* an operation that hplan lacks */
    bool gpus;     /* memory of GPUs, not of hosts */
    hp_wire by;
    hp_algorithm algorithm;     /* algorithm that the back end ran; LIBRARY: unknown */
    char tool[80], library[48]; /* "nccl-tests 2.17.6", "NCCL 2.26.2" */
    int32_t ranks;              /* ranks in the text; 0: none yet */
    int n_host;
    char host[64][64]; /* the last is the newest rank's */
    int32_t on_host[64];
} import_section;

struct hp_import {
    hp_arena *arena;
    hp_import_options o;
    const char *where, *date;
    int line;
    const struct import_tool *tool;
    import_section s;
    int column[8]; /* columns of the tool's table */
    bool table;    /* a table has begun */
    char left_out[200];
    int n, capacity;
    import_point *point;
};

/* A tool whose output can be read. */
typedef struct import_tool {
    bool (*begins)(const char *line); /* is this one of its lines before a table? */
    hp_status (*line)(hp_import *i, char *line, hp_error *err);
    const char *(*title)(const char *line); /* start of a table's title in the line; NULL: none */
    const char *const *comments; /* beginnings, after the '#', of its other relevant lines; NULL-terminated */
} import_tool;
extern const import_tool hp_import_nccl_tests, hp_import_osu;

/* The lines of a text, without the prefixes of a log. */
typedef struct import_lines {
    char **line;
    int n;
    const char *form[16]; /* forms of the prefixes before titles */
    int n_form;
} import_lines;
/* tools: ends in NULL. */
import_lines hp_import_lines(hp_arena *arena, const char *text, const import_tool *const *tools);

/* Reads a comment of `hplan bench comm`; ignores others. */
hp_status hp_import_hplan(hp_import *i, const char *line, hp_error *err);
/* Sets c->algorithm: the text's, the option's, or the one that hplan's own back ends choose for this many
 * bytes. */
hp_status hp_import_algorithm(const hp_import *i, hp_collective_call *c, double bytes, hp_error *err);

/* "FILE line N: what: 'text'". */
hp_status hp_import_bad(const hp_import *i, const char *what, const char *text, hp_error *err);
/* Adds a time for this many bytes of the whole data. */
hp_status hp_import_add(hp_import *i, double bytes, double seconds, hp_error *err);
/* Number of ranks, from the text or the option. Errors: neither gives it. */
hp_status hp_import_ranks(const hp_import *i, int32_t *ranks, int32_t *per_node, hp_error *err);
/* hp_collective for a tool's name: "all_reduce", "All-to-All"; IMPORT_MESSAGES for "sendrecv"; otherwise
 * IMPORT_UNKNOWN. */
int hp_import_find(const char *name);
/* Reports a test that is not supported and skips its lines. */
void hp_import_leave_out(hp_import *i, const char *name);

/* Splits a line at its blanks; returns the number of words. */
int hp_import_words(char *line, char **word, int most);
/* Parses a word that is a number and nothing else. */
bool hp_import_number(const char *word, double *value);

#endif
