/* cmd_export.c - a trace for other viewers: Chrome/Perfetto JSON, CSV, Nsight-like SQLite. */
#include "cli/cli.h"
#include "traces/export.h"

#include <string.h>

typedef enum form { FORM_NONE, FORM_CHROME, FORM_CSV, FORM_NSYS } form;

typedef struct options {
    const char *path, *output;
    form form;
    bool sim, json;
} options;

enum { KEY_CHROME = 256, KEY_CSV, KEY_NSYS, KEY_SIM };

static error_t parse_option(int key, char *arg, struct argp_state *state) {
    options *o = state->input;
    switch (key) {
    case KEY_CHROME:
        o->form = FORM_CHROME;
        return 0;
    case KEY_CSV:
        o->form = FORM_CSV;
        return 0;
    case KEY_NSYS:
        o->form = FORM_NSYS;
        return 0;
    case KEY_SIM:
        o->sim = true;
        return 0;
    case 'o':
        o->output = arg;
        return 0;
    case 'j':
        o->json = true;
        return 0;
    case ARGP_KEY_ARG:
        if (o->path) argp_error(state, "one file at a time: '%s' is one word too many", arg);
        o->path = arg;
        return 0;
    case ARGP_KEY_END:
        if (!o->path || !o->output || !o->form)
            argp_error(state, "needs a file, a format and an output. For example: hplan export run.db "
                              "--chrome -o trace.json");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static hp_status find_run(hp_db *db, bool sim, int64_t *run, hp_error *err) {
    int64_t simulated = -1, executed = -1;
    HP_TRY(hp_trace_find_pair(db, &simulated, &executed, err));
    *run = sim || executed < 0 ? simulated : executed;
    if (*run >= 0) return HP_OK;
    return hp_fail(err, HP_EDATA, "%s: holds no %s run to export", db->path,
                   sim ? "simulated" : "simulated or executed");
}

static hp_status export_chrome(hp_arena *arena, hp_db *db, const hp_trace *t, const char *path,
                               hp_error *err) {
    static const hp_counter shown[] = {HP_COUNTER_MEMORY, HP_COUNTER_RSS};
    enum { N = sizeof shown / sizeof shown[0] };
    hp_export_counter counter[N];
    for (int i = 0; i < N; i++) {
        counter[i].name = hp_counter_names[shown[i]];
        HP_TRY(hp_trace_counter(arena, db, t->run, counter[i].name, &counter[i].value, &counter[i].n, err));
    }
    return hp_export_chrome(arena, t, counter, N, path, err);
}

static hp_status export_run(hp_arena *arena, hp_db *db, const options *o, hp_error *err) {
    hp_trace t;
    int64_t run = -1;
    HP_TRY(hp_db_open(o->path, db, err));
    HP_TRY(find_run(db, o->sim, &run, err));
    HP_TRY(hp_trace_load(arena, db, run, true, &t, err));
    if (o->form == FORM_CHROME) HP_TRY(export_chrome(arena, db, &t, o->output, err));
    if (o->form == FORM_CSV) HP_TRY(hp_export_csv(&t, o->output, err));
    if (o->form == FORM_NSYS) HP_TRY(hp_export_nsys(arena, &t, o->output, err));
    if (o->json)
        return cli_print_json(json_pack("{s:i, s:s, s:I, s:I}", "schema", 1, "kind", t.kind, "run",
                                        (json_int_t)run, "spans", (json_int_t)t.n_span),
                              err);
    char plain[4096];
    fprintf(stderr, "wrote %s: run %lld (%s), %lld spans\n", cli_plain(o->output, plain, sizeof plain),
            (long long)run, t.kind, (long long)t.n_span);
    return cli_finish_stdout(err);
}

int cmd_export(int argc, char **argv) {
    static const struct argp_option list[] = {
        {"chrome", KEY_CHROME, NULL, 0, "Chrome trace JSON, for Perfetto and chrome://tracing", 0},
        {"csv", KEY_CSV, NULL, 0, "one line per span", 0},
        {"nsys", KEY_NSYS, NULL, 0, "SQLite with Nsight Systems' tables", 0},
        {"sim", KEY_SIM, NULL, 0, "the prediction, also when the file holds a run", 0},
        {"output", 'o', "FILE", 0, "where to write", 0},
        {"json", 'j', NULL, 0, "say as JSON what was written", 0},
        {0}};
    static const struct argp argp = {
        list,
        parse_option,
        "DB --chrome|--csv|--nsys -o FILE",
        "Writes the newest executed run (the simulated one if there is none) for other viewers: the newest "
        "512 steps and the evaluation.",
        NULL,
        NULL,
        NULL};
    options o = {0};
    argp_parse(&argp, argc, argv, 0, NULL, &o);
    hp_error err = {0};
    hp_db db = {0};
    hp_arena *arena = hp_arena_new();
    const hp_status status = export_run(arena, &db, &o, &err);
    hp_db_close(&db);
    hp_arena_free(arena);
    return status == HP_OK ? HP_OK : cli_report(&err);
}
