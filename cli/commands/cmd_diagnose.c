/* cmd_diagnose.c - why a run stopped: what each rank had done, who waited for whom. Reads the run's trace, or
 * the rings of a run that was killed with its launcher. */
#include "cli/show/frame.h"
#include "plan/program/print.h"
#include "plan/store/store.h"
#include "traces/faults/diagnosis.h"
#include "traces/trace_ring.h"

#include <stddef.h>
#include <string.h>
#include <sys/stat.h>

typedef struct options {
    bool json;
} options;

enum { MOST_SHOWN = 32, PATH = 4200 };

typedef struct stop_report {
    hp_plan plan;
    hp_diagnosis *d;
    hp_stopped *at; /* per rank */
    int ranks, culprit;
    bool whole; /* the run came to its end */
} stop_report;

/* --- what was done --- */

static hp_status read_trace(hp_db *db, stop_report *r, hp_error *err) {
    sqlite3_stmt *st = NULL;
    bool row = false;
    int64_t run = -1, n = 0;
    HP_TRY(hp_db_prepare(db, "SELECT id, status FROM run WHERE kind = 'exec' ORDER BY id DESC LIMIT 1", &st,
                         err));
    hp_status s = hp_db_next(db, st, &row, err);
    if (s == HP_OK && row) run = sqlite3_column_int64(st, 0);
    if (s == HP_OK && row)
        r->whole = sqlite3_column_type(st, 1) != SQLITE_NULL && sqlite3_column_int64(st, 1) == 0;
    sqlite3_finalize(st);
    HP_TRY(s);
    if (run < 0) return hp_fail(err, HP_EDATA, "%s holds no run: hplan run writes one", db->path);
    HP_TRY(hp_db_prepare(db, "SELECT rank, iter, task FROM span WHERE run = ? AND iter >= 0", &st, err));
    hp_db_bind(st, "i", run);
    while ((s = hp_db_next(db, st, &row, err)) == HP_OK && row) {
        n++;
        hp_diagnosis_done(r->d, sqlite3_column_int(st, 0), sqlite3_column_int(st, 1),
                          sqlite3_column_int(st, 2));
    }
    sqlite3_finalize(st);
    if (s == HP_OK && n == 0) return hp_fail(err, HP_EDATA, "%s: no task was done in any step", db->path);
    return s;
}

static hp_status read_rings(const char *dir, stop_report *r, hp_error *err) {
    int found = 0;
    for (int rank = 0; rank < r->ranks; rank++) {
        char path[PATH + 32];
        hp_ring_data data;
        hp_error ignored;
        snprintf(path, sizeof path, "%s/rank-%d.ring", dir, rank);
        if (hp_ring_read(path, &data, &ignored) != HP_OK) continue; /* another node has that rank */
        found++;
        for (int64_t i = 0; i < data.n_span; i++)
            hp_diagnosis_done(r->d, rank, data.span[i].iter, data.span[i].task);
        hp_ring_free(&data);
    }
    return found ? HP_OK : hp_fail(err, HP_EDATA, "%s holds no rings of ranks", dir);
}

static hp_status read_plan(hp_arena *arena, hp_db *db, stop_report *r, hp_error *err) {
    HP_TRY(hp_plan_read(arena, db, &r->plan, err));
    r->ranks = hp_program_ranks(r->plan.program);
    r->d = hp_diagnosis_new(arena, r->plan.program);
    r->at = HP_NEW(arena, hp_stopped, r->ranks);
    return HP_OK;
}

static hp_status read_all(frame *f, stop_report *r, hp_error *err) {
    const char *what = f->n_word ? f->word[0] : "run.db";
    struct stat st;
    char path[PATH];
    const bool folder = stat(what, &st) == 0 && S_ISDIR(st.st_mode);
    snprintf(path, sizeof path, folder ? "%s/run.db" : "%s", what);
    HP_TRY(hp_db_open(path, &f->db, err));
    HP_TRY(read_plan(f->arena, &f->db, r, err));
    HP_TRY(folder ? read_rings(what, r, err) : read_trace(&f->db, r, err));
    hp_diagnosis_conclude(r->d, r->at);
    r->culprit = hp_diagnosis_culprit(r->d, r->at);
    return HP_OK;
}

/* --- in words --- */

static const char *label(const stop_report *r, int rank, char out[200]) {
    const hp_program *p = r->plan.program;
    out[0] = '\0';
    if (r->at[rank].task >= 0)
        hp_task_label(p, r->plan.graph, &p->role[rank % p->n_role], r->at[rank].task, out, 200);
    return out;
}

static void print_rank(const stop_report *r, int rank) {
    const hp_stopped *s = &r->at[rank];
    char task[200];
    printf("  rank %-4d ", rank);
    if (s->kind == HP_STOP_UNKNOWN) {
        printf("nothing is known of it\n");
        return;
    }
    printf("step %d: ", s->iter + 1);
    if (s->kind == HP_STOP_BETWEEN) printf("had not begun it");
    if (s->kind == HP_STOP_COMPUTES) printf("was at `%s`", label(r, rank, task));
    if (s->kind == HP_STOP_WAITS) printf("waited in `%s`", label(r, rank, task));
    for (int k = 0; k < s->n_for && k < HP_STOP_NAMED; k++)
        printf("%s %d", k == 0 ? (s->n_for > 1 ? " for ranks" : " for rank") : ",", s->for_rank[k]);
    if (s->n_for > HP_STOP_NAMED) printf(" and %d more", s->n_for - HP_STOP_NAMED);
    if (s->kind == HP_STOP_WAITS && s->n_for == 0) printf(", to which all had come");
    printf("\n");
}

static void print_verdict(const stop_report *r) {
    int waits = 0, together = 0, begun = 0;
    for (int k = 0; k < r->ranks; k++) {
        waits += r->at[k].kind == HP_STOP_WAITS;
        begun += r->at[k].kind != HP_STOP_BETWEEN && r->at[k].kind != HP_STOP_UNKNOWN;
        together += r->at[k].kind == HP_STOP_WAITS && r->at[k].n_for == 0;
    }
    if (r->whole)
        printf("the run came to its end: nothing stopped it\n");
    else if (r->culprit >= 0)
        printf("rank %d held up the others, and waited for nobody:\n", r->culprit);
    else if (together > 0)
        printf("all had come to what %d rank%s waited for: one of them stopped in it, or what is between "
               "them did\n",
               together, together == 1 ? "" : "s");
    else if (begun < r->ranks && waits > 0)
        printf("%d of %d ranks waited, %d had not begun the step: between steps ranks wait for each other, "
               "too\n",
               waits, r->ranks, r->ranks - begun);
    else if (waits == 0)
        printf(
            "no rank waited for another: what ended the run came from outside, or is said by its message\n");
    else
        printf("%d of %d ranks waited, not all for the same one\n", waits, r->ranks);
}

static void print_report(const stop_report *r) {
    int shown = 0;
    print_verdict(r);
    if (r->whole) return;
    if (r->culprit >= 0) print_rank(r, r->culprit);
    for (int k = 0; k < r->ranks; k++)
        if (k != r->culprit && shown++ < MOST_SHOWN) print_rank(r, k);
    if (shown > MOST_SHOWN) printf("  and %d more: --json lists all\n", shown - MOST_SHOWN);
}

static json_t *report_json(const stop_report *r) {
    static const char *const KINDS[] = {"unknown", "between", "computes", "waits"};
    json_t *ranks = json_array();
    for (int k = 0; k < r->ranks; k++) {
        const hp_stopped *s = &r->at[k];
        json_t *others = json_array();
        char task[200];
        for (int i = 0; i < s->n_for && i < HP_STOP_NAMED; i++)
            json_array_append_new(others, json_integer(s->for_rank[i]));
        json_array_append_new(ranks,
                              json_pack("{s:i, s:s, s:i, s:s, s:i, s:o}", "rank", k, "state", KINDS[s->kind],
                                        "step", (int)s->iter + 1, "task", label(r, k, task),
                                        "waits_for_count", (int)s->n_for, "waits_for", others));
    }
    return json_pack("{s:i, s:b, s:i, s:o}", "schema", 1, "complete", r->whole, "culprit", r->culprit, "rank",
                     ranks);
}

static hp_status diagnose(frame *f, hp_error *err) {
    const options *o = f->options;
    stop_report r = {.culprit = -1};
    HP_TRY(read_all(f, &r, err));
    if (o->json) return cli_print_json(report_json(&r), err);
    print_report(&r);
    return cli_finish_stdout(err);
}

int cmd_diagnose(int argc, char **argv) {
    static const frame_option list[] = {{"json", 'j', NULL, offsetof(options, json), 0, "one JSON object"},
                                        {0}};
    static const frame_command command = {
        .option = list,
        .usage = "[RUN.db|FOLDER]",
        .doc =
            "Why a run stopped: what each rank had done and who waited for whom, from its trace (run.db), or "
            "from the folder that a killed run has left.",
        .max_word = 1,
        .run = diagnose};
    options o = {.json = false};
    return frame_run(&command, &o, argc, argv);
}
