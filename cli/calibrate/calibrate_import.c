/* calibrate_import.c - reads all files before writing anything: a table is complete or unchanged. */
#include "cli/calibrate/calibrate_import.h"

#include "cli/show/calibrate_show.h"
#include "cli/show/next.h"
#include "costmodels/tuning/import.h"
#include "base/input.h"
#include "base/clock.h"
#include "base/units.h"

#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

typedef struct import_job {
    const calibrate_import_options *o;
    hp_machine machine;
    const char *path; /* path of the table */
    hp_import_options rows;
} import_job;

static hp_status find_machine(import_job *j, hp_error *err) {
    const calibrate_import_options *o = j->o;
    j->path = o->out;
    if (o->machine) HP_TRY(hp_machine_load(o->machine, &j->machine, err));
    if (!o->machine) {
        j->machine = *o->here;
        j->path = o->out ? o->out : o->here_path;
    }
    j->rows.machine = &j->machine;
    if (j->path) return HP_OK;
    return hp_fail(err, HP_EUSAGE, "where to write the rows of machine %s: add -o FILE.cost",
                   j->machine.name);
}

static hp_status find_count(const char *text, const char *option, int32_t *value, hp_error *err) {
    int64_t n = 0;
    if (text) HP_TRY(hp_parse_int(text, option, 1, 1 << 20, &n, err));
    *value = (int32_t)n;
    return HP_OK;
}

static hp_status find_algorithm(import_job *j, hp_error *err) {
    const char *name = j->o->algorithm;
    const int a = name ? hp_algorithm_find(name) : (int)HP_ALGORITHM_LIBRARY;
    j->rows.algorithm = (hp_algorithm)(a < 0 ? 0 : a);
    if (a >= 0) return HP_OK;
    char names[160] = "";
    for (int i = HP_ALGORITHM_LIBRARY + 1; i < HP_ALGORITHMS; i++) {
        const size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "", hp_algorithms[i]->name);
    }
    return hp_fail(err, HP_EUSAGE, "--algorithm: none is called '%.40s'; choose %s", name, names);
}

static hp_status parse_options(import_job *j, hp_error *err) {
    const calibrate_import_options *o = j->o;
    HP_TRY(find_machine(j, err));
    HP_TRY(find_count(o->ranks, "--ranks", &j->rows.ranks, err));
    HP_TRY(find_count(o->per_node, "--per-node", &j->rows.per_node, err));
    j->rows.op = o->op;
    return find_algorithm(j, err);
}

hp_status calibrate_import_check(const calibrate_import_options *o, const char *word, hp_error *err) {
    const char *const of_import[][2] = {
        {o->ranks, "--ranks"}, {o->per_node, "--per-node"}, {o->op, "--op"}, {o->algorithm, "--algorithm"}};
    for (size_t i = 0; i < sizeof of_import / sizeof *of_import && !o->first; i++)
        if (of_import[i][0])
            return hp_fail(err, HP_EUSAGE, "%s needs --import: which file?", of_import[i][1]);
    if (!word || o->first) return HP_OK;
    return hp_fail(err, HP_EUSAGE, "'%.80s' is one word too many; to take in a file: --import", word);
}

static void format_day(time_t t, char out[16]) {
    struct tm day;
    strftime(out, 16, "%Y-%m-%d", gmtime_r(&t, &day));
}

/* A file's date approximates the date of measurement. */
static hp_status take_file(hp_arena *arena, hp_import *i, const char *path, hp_error *err) {
    char *text = NULL, date[16];
    struct stat st;
    HP_TRY(hp_text_file(arena, path, "output of nccl-tests or OSU", "", &text, err));
    format_day(stat(path, &st) == 0 ? st.st_mtime : time(NULL), date);
    return hp_import_text(i, text, path, hp_arena_strdup(arena, date), err);
}

/* Keeps an earlier table's rows and description. */
static hp_status merge(hp_arena *arena, const import_job *j, hp_cost_table *t, hp_error *err) {
    hp_cost_table *before = NULL;
    if (access(j->path, F_OK) != 0) {
        snprintf(t->status, sizeof t->status, "%s", j->machine.device.is_cpu ? "" : hp_gpu_statuses[0]);
        return HP_OK;
    }
    HP_TRY(hp_cost_load(arena, j->path, &j->machine, &before, err));
    if (strcmp(before->machine, t->machine) != 0)
        return hp_fail(err, HP_EUSAGE,
                       "%s is of machine %s, these rows are of %s: choose another -o, or --machine %s",
                       j->path, before->machine, t->machine, before->machine);
    memcpy(t->date, before->date, sizeof t->date);
    memcpy(t->processor, before->processor, sizeof t->processor);
    memcpy(t->driver, before->driver, sizeof t->driver);
    memcpy(t->status, before->status, sizeof t->status);
    hp_rows_keep(t, before);
    return HP_OK;
}

static hp_status show(const import_job *j, const hp_cost_table *rows, const char *left_out, double elapsed_s,
                      hp_error *err) {
    if (*left_out) fprintf(stderr, "left out, hplan has no such operation: %s\n", left_out);
    if (j->o->json) return cli_print_json(calibrate_json(rows, j->path, elapsed_s, 0), err);
    calibrate_print(rows);
    char plain[4096];
    printf("\n%d rows of machine %s, wrote %s\n", rows->n, j->machine.name,
           cli_plain(j->path, plain, sizeof plain));
    next_command c = next_start("plot comm");
    next_word(&c, j->path);
    next_print(stdout, &c);
    return cli_finish_stdout(err);
}

hp_status calibrate_import(hp_arena *arena, const calibrate_import_options *o, hp_error *err) {
    const double start_s = hp_now_s();
    import_job j = {.o = o};
    char today[16];
    HP_TRY(parse_options(&j, err));
    hp_import *i = hp_import_new(arena, &j.rows);
    HP_TRY(take_file(arena, i, o->first, err));
    for (int k = 0; k < o->n_more; k++) HP_TRY(take_file(arena, i, o->more[k], err));
    format_day(time(NULL), today);
    hp_cost_table *rows = hp_rows_new(arena, j.machine.name, today),
                  *t = hp_rows_new(arena, j.machine.name, today);
    HP_TRY(hp_import_rows(i, rows, err));
    hp_rows_keep(t, rows);
    HP_TRY(merge(arena, &j, t, err));
    HP_TRY(hp_rows_write(t, j.path, err));
    return show(&j, rows, hp_import_left_out(i), hp_now_s() - start_s, err);
}
