/* show_places.c - hosts and processors of runs, side by side. */
#include "cli/show/show_places.h"

#include <string.h>

bool places_note(const hp_trace *a, const char *name_a, const hp_trace *b, const char *name_b) {
    if (!*a->host || !*b->host) return false;
    if (strcmp(a->processor, b->processor) != 0)
        fprintf(stderr, "hplan: note: different processors: %s %.100s (%.100s), %s %.100s (%.100s)\n", name_a,
                a->processor, a->host, name_b, b->processor, b->host);
    else if (strcmp(a->host, b->host) != 0)
        fprintf(stderr, "hplan: note: different hosts: %s %.100s, %s %.100s (both %.100s)\n", name_a, a->host,
                name_b, b->host, a->processor);
    else
        return false;
    return true;
}

json_t *places_json(const hp_trace *t) {
    if (!*t->host) return json_null();
    return json_pack("{s:s, s:s}", "host", t->host, "processor", t->processor);
}
