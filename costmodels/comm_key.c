/* comm_key.c - the key of a collective's row: "allreduce own.ring r8 n4". */
#include "costmodels/rows.h"

#include <stdio.h>
#include <string.h>

const char *hp_collective_key(const hp_collective_call *c, char out[HP_COLLECTIVE_KEY]) {
    const char *by = c->by ? hp_backend_names[c->by - 1] : "", *dot = "", *algorithm = "";
    if (c->by && c->algorithm) dot = ".", algorithm = hp_algorithms[c->algorithm]->name;
    snprintf(out, HP_COLLECTIVE_KEY, "%s%s%s%s%s r%d n%d", hp_collective_infos[c->what].name,
             c->by ? " " : "", by, dot, algorithm, c->ranks, c->per_node);
    return out;
}

static bool find_backend(const char *word, hp_wire *by) {
    for (int b = 0; b < (int)HP_BACKENDS; b++)
        if (strcmp(hp_backend_names[b], word) == 0) return *by = (hp_wire)(1 + b), true;
    return false;
}

/* "own.ring" */
static bool find_way(char *word, hp_collective_call *c) {
    char *dot = strchr(word, '.');
    if (dot) *dot++ = 0;
    const int algorithm = dot ? hp_algorithm_find(dot) : (int)HP_ALGORITHM_LIBRARY;
    c->algorithm = (hp_algorithm)(algorithm < 0 ? 0 : algorithm);
    return (!dot || algorithm > (int)HP_ALGORITHM_LIBRARY) && find_backend(word, &c->by);
}

bool hp_collective_of_key(const char *key, hp_collective_call *c) {
    char op[24], way[40], again[HP_COLLECTIVE_KEY];
    *c = (hp_collective_call){.by = HP_WIRE_ANY};
    const bool open = sscanf(key, "%23s r%d n%d", op, &c->ranks, &c->per_node) == 3;
    if (!open && sscanf(key, "%23s %39s r%d n%d", op, way, &c->ranks, &c->per_node) != 4) return false;
    const int what = hp_collective_find(op);
    if (what < 0 || c->ranks < 1 || c->per_node < 1 || (!open && !find_way(way, c))) return false;
    c->what = (hp_collective)what;
    return strcmp(hp_collective_key(c, again), key) == 0;
}
