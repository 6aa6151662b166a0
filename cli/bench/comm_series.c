/* comm_series.c - combines operations with back ends and drops impossible pairs. */
#include "cli/bench/comm_series.h"

#include "cli/bench/bench_list.h"
#include "base/nearest.h"

#include <string.h>

enum { SENDRECV = HP_COLLECTIVES, OPS, MOST_CHOICES = 64 };

typedef struct choice {
    hp_backend backend;
    hp_algorithm algorithm;
    bool named; /* requested by name, so it must be usable */
    bool used;
} choice;

typedef struct choices {
    int n;
    choice at[MOST_CHOICES];
} choices;

static const char *op_name(int op) {
    return op == SENDRECV ? "sendrecv" : hp_collective_infos[op].name;
}

/* --- operations --- */

/* Also accepts nccl-tests' spelling: "all_reduce". */
static bool is_op(const char *word, const char *name) {
    for (; *word && *name; word++) {
        if (*word == '_') continue;
        if (*word != *name++) return false;
    }
    return !*word && !*name;
}

static hp_status unknown_op(hp_arena *arena, const char *word, hp_error *err) {
    const char *names[OPS], *all = "";
    for (int op = 0; op < OPS; op++) {
        names[op] = op_name(op);
        all = hp_arena_printf(arena, "%s, %s", all, names[op]);
    }
    const char *near = hp_nearest(word, names, OPS);
    if (near)
        return hp_fail(err, HP_EUSAGE, "--op: there is no operation '%.40s'; did you mean %s?", word, near);
    return hp_fail(err, HP_EUSAGE, "--op: there is no operation '%.40s'; choose all%s", word, all);
}

static hp_status parse_ops(hp_arena *arena, const char *text, bool wanted[OPS], hp_error *err) {
    bench_list l;
    HP_TRY(bench_list_parse(arena, text, "--op", true, &l, err));
    for (int i = 0; i < l.n; i++) {
        bool found = false;
        for (int op = 0; op < OPS; op++)
            if (is_op(l.word[i], op_name(op)) || strcmp(l.word[i], "all") == 0) wanted[op] = found = true;
        if (!found) return unknown_op(arena, l.word[i], err);
    }
    return HP_OK;
}

/* --- back ends --- */

static void add(choices *c, hp_backend backend, hp_algorithm algorithm, bool named) {
    int i = 0;
    while (i < c->n && (c->at[i].backend != backend || c->at[i].algorithm != algorithm)) i++;
    HP_ASSERT(i < MOST_CHOICES);
    if (i == c->n) c->at[c->n++] = (choice){.backend = backend, .algorithm = algorithm};
    c->at[i].named |= named;
}

static void add_all(choices *c, const hp_device_info *device, bool algorithms) {
    for (int b = 0; b < HP_BACKENDS; b++) {
        if (!hp_device_has_backend(device, (hp_backend)b)) continue;
        add(c, (hp_backend)b, HP_ALGORITHM_LIBRARY, false);
        for (int a = HP_ALGORITHM_LIBRARY + 1; a < HP_ALGORITHMS && algorithms && hp_backend_steps(b); a++)
            add(c, (hp_backend)b, (hp_algorithm)a, false);
    }
}

static hp_status find_algorithm(hp_arena *arena, const char *word, const char *name, int backend,
                                int *algorithm, hp_error *err) {
    *algorithm = hp_algorithm_find(name);
    if (!hp_backend_steps(backend))
        return hp_fail(err, HP_EUSAGE, "--backend: %s chooses its algorithms itself: leave '.%.40s' out",
                       hp_backend_names[backend], name);
    if (*algorithm > HP_ALGORITHM_LIBRARY) return HP_OK;
    const char *all = hp_algorithms[HP_ALGORITHM_LIBRARY + 1]->name;
    for (int a = HP_ALGORITHM_LIBRARY + 2; a < HP_ALGORITHMS; a++)
        all = hp_arena_printf(arena, "%s, %s", all, hp_algorithms[a]->name);
    return hp_fail(err, HP_EUSAGE, "--backend: '%.40s': there is no algorithm of that name; choose %s", word,
                   all);
}

/* "own", "own.ring" */
static hp_status parse_choice(hp_arena *arena, const comm_where *where, const char *word, choices *c,
                              hp_error *err) {
    const size_t n = strcspn(word, ".");
    int algorithm = HP_ALGORITHM_LIBRARY, b = 0;
    while (b < HP_BACKENDS && (strncmp(hp_backend_names[b], word, n) != 0 || hp_backend_names[b][n])) b++;
    if (b == HP_BACKENDS || !hp_device_has_backend(where->device, (hp_backend)b)) {
        const char *all = "auto, all";
        for (int k = 0; k < HP_BACKENDS; k++)
            if (hp_device_has_backend(where->device, (hp_backend)k))
                all = hp_arena_printf(arena, "%s, %s", all, hp_backend_names[k]);
        return hp_fail(err, HP_EUSAGE, "--backend: device %s has no back end '%.40s'; choose %s",
                       where->device->name, word, all);
    }
    if (word[n]) HP_TRY(find_algorithm(arena, word, word + n + 1, b, &algorithm, err));
    add(c, (hp_backend)b, (hp_algorithm)algorithm, true);
    return HP_OK;
}

static hp_status parse_backends(hp_arena *arena, const comm_where *where, const char *text, choices *c,
                                hp_error *err) {
    bench_list l;
    HP_TRY(bench_list_parse(arena, text, "--backend", true, &l, err));
    for (int i = 0; i < l.n; i++) {
        const bool all = strcmp(l.word[i], "all") == 0;
        if (all || strcmp(l.word[i], "auto") == 0)
            add_all(c, where->device, all);
        else
            HP_TRY(parse_choice(arena, where, l.word[i], c, err));
    }
    return HP_OK;
}

/* --- what goes together --- */

/* Messages of `own` are those of `mpi`. */
static bool does(const comm_where *where, const choice *c, int op) {
    if (op == SENDRECV) return c->backend != HP_BACKEND_OWN && c->algorithm == HP_ALGORITHM_LIBRARY;
    const hp_collective_case what = {
        .what = (hp_collective)op, .size = where->ranks, .root = where->root, .per_node = where->per_node};
    return c->algorithm == HP_ALGORITHM_LIBRARY || hp_algorithm_does(c->algorithm, &what, true);
}

static const char *choice_text(hp_arena *arena, const choice *c) {
    if (c->algorithm == HP_ALGORITHM_LIBRARY) return hp_backend_names[c->backend];
    return hp_arena_printf(arena, "%s.%s", hp_backend_names[c->backend], hp_algorithms[c->algorithm]->name);
}

static hp_status check_used(hp_arena *arena, const comm_where *where, const choices *c, hp_error *err) {
    for (int i = 0; i < c->n; i++)
        if (c->at[i].named && !c->at[i].used)
            return hp_fail(err, HP_EUSAGE, "--backend: %s does none of the operations among %d ranks",
                           choice_text(arena, &c->at[i]), where->ranks);
    return HP_OK;
}

hp_status comm_series_list(hp_arena *arena, const comm_where *where, const char *ops, const char *backends,
                           const char **series, hp_error *err) {
    bool wanted[OPS] = {false};
    choices c = {0};
    *series = "";
    HP_TRY(parse_ops(arena, ops, wanted, err));
    HP_TRY(parse_backends(arena, where, backends, &c, err));
    for (int op = 0; op < OPS; op++) {
        const char *before = *series;
        for (int i = 0; i < c.n && wanted[op]; i++) {
            if (!does(where, &c.at[i], op)) continue;
            c.at[i].used = true;
            *series = hp_arena_printf(arena, "%s%s%s:%s", *series, **series ? "," : "", op_name(op),
                                      choice_text(arena, &c.at[i]));
        }
        if (wanted[op] && *series == before && strcmp(ops, "all") != 0)
            return hp_fail(err, HP_EUSAGE, "--op: %s is not done by --backend %.80s; choose --backend mpi",
                           op_name(op), backends);
    }
    return check_used(arena, where, &c, err);
}
