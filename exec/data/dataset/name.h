/* name.h - names of data with a kind and options: KIND:PATH[,KEY=NUMBER]... */
#ifndef HP_NAME_H
#define HP_NAME_H

#include "base/arena.h"
#include "base/status.h"

#include <stdbool.h>

typedef struct hp_data_key {
    const char *key;
    double low, high;
    bool whole; /* must be an integer */
    double *value;
} hp_data_key;

/* Does the name begin with KIND: ? */
bool hp_data_name_has_kind(const char *name, const char *kind);

/* Parses the options at the end of the name and returns PATH, which may contain commas and colons: everything
 * up to the last word that is not a known KEY=. Errors: HP_EUSAGE (not a number, out of range). */
hp_status hp_data_name_parse(hp_arena *a, const char *name, const hp_data_key *keys, int n, char **path,
                             hp_error *err);

#endif
