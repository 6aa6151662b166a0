/* import_hplan.c - reads the lines of `hplan bench comm` above its tables, which have nccl-tests' format: the
 * back end with its algorithm, and the mode. Rows take back-to-back iterations. */
#include "costmodels/tuning/import_text.h"

#include <string.h>

/* "own.ring", "mpi" */
static bool find_way(char *way, import_section *s) {
    char *dot = strchr(way, '.');
    if (dot) *dot++ = 0;
    const int algorithm = dot ? hp_algorithm_find(dot) : (int)HP_ALGORITHM_LIBRARY;
    int b = 0;
    while (hp_backend_names[b] && strcmp(hp_backend_names[b], way) != 0) b++;
    if (!hp_backend_names[b] || algorithm < 0) return false;
    s->by = (hp_wire)(1 + b);
    s->algorithm = (hp_algorithm)algorithm;
    s->gpus = s->by == HP_WIRE_NCCL; /* otherwise ranks exchange host memory */
    return true;
}

/* "# back end own.ring, pipelined; medians of 3 turns ..." */
static hp_status read_way(hp_import *i, const char *line, hp_error *err) {
    char way[40], mode[16];
    if (sscanf(line, "# back end %39[^,], %15[^;]", way, mode) != 2 || !find_way(way, &i->s))
        return hp_import_bad(i, "expected '# back end NAME.ALGORITHM, MODE;' with names of this hplan", line,
                             err);
    if (strcmp(mode, "pipelined") == 0) return HP_OK;
    return hp_import_bad(i, "rows are of iterations back to back: hplan bench comm --mode pipelined", line,
                         err);
}

hp_status hp_import_hplan(hp_import *i, const char *line, hp_error *err) {
    char version[24], library[sizeof i->s.library];
    if (sscanf(line, "# hplan bench comm %23[^,], %47[^,]", version, library) == 2) {
        snprintf(i->s.tool, sizeof i->s.tool, "hplan bench comm %s", version);
        memcpy(i->s.library, library, sizeof library);
    }
    return strncmp(line, "# back end ", 11) == 0 ? read_way(i, line, err) : HP_OK;
}

hp_status hp_import_algorithm(const hp_import *i, hp_collective_call *c, double bytes, hp_error *err) {
    const hp_algorithm said = i->s.algorithm, asked = i->o.algorithm;
    const hp_collective_case what = {.what = c->what, .size = c->ranks, .per_node = c->per_node};
    c->algorithm = asked;
    if (i->s.op == IMPORT_MESSAGES || !hp_backend_steps((int32_t)c->by - 1)) return HP_OK;
    c->algorithm = said ? said : hp_algorithm_choose(&what, (int64_t)bytes, true);
    if (!asked || asked == c->algorithm) return HP_OK;
    return hp_fail(err, HP_EUSAGE, "--algorithm %s: %.200s line %d is of %s; leave the option out",
                   hp_algorithms[asked]->name, i->where, i->line, hp_algorithms[c->algorithm]->name);
}
