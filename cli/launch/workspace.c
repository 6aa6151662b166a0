/* workspace.c - produces a run.db from a plan in a scratch directory. */
#define _GNU_SOURCE
#include "cli/launch/workspace.h"
#include "base/alloc.h"

#include "cli/launch/hostfile.h"
#include "cli/launch/owners.h"
#include "base/new_file.h"
#include "base/units.h"
#include "plan/lower/lower_placement.h"
#include "traces/trace.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

hp_status workspace_open(const char *final, workspace *w, hp_error *err) {
    *w = (workspace){.dir = ""};
    HP_TRY(hp_new_file_check(final, err));
    strcpy(w->final, final);
    char dir[sizeof w->dir];
    snprintf(dir, sizeof dir, "%s.tmp-XXXXXX", final);
    if (!mkdtemp(dir))
        return hp_fail(err, errno == ENOSPC ? HP_EIO : HP_ECREATE, "cannot make a folder beside %s: %s",
                       final, strerror(errno));
    strcpy(w->dir, dir);
    signal(SIGPIPE, SIG_IGN); /* the directory must be removed, so a closed stdout is an error instead of the
                               * end */
    snprintf(w->db, sizeof w->db, "%s/run.db", w->dir);
    return owners_note(w->dir, "hplan", getpid(), err);
}

void workspace_adopt(const char *dir, const char *final, workspace *w) {
    *w = (workspace){.dir = ""};
    snprintf(w->final, sizeof w->final, "%s", final);
    snprintf(w->dir, sizeof w->dir, "%s", dir);
    snprintf(w->db, sizeof w->db, "%s/run.db", w->dir);
}

void workspace_close(workspace *w) {
    DIR *d = w->dir[0] ? opendir(w->dir) : NULL;
    if (!d) return;
    for (struct dirent *e; (e = readdir(d));)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0) unlinkat(dirfd(d), e->d_name, 0);
    closedir(d);
    rmdir(w->dir);
    w->dir[0] = '\0';
}

static hp_status copy_database(const char *path, hp_db *from, hp_error *err) {
    sqlite3 *to = NULL;
    int code = sqlite3_open(path, &to);
    sqlite3_backup *b = code == SQLITE_OK ? sqlite3_backup_init(to, "main", from->sql, "main") : NULL;
    if (b) {
        sqlite3_backup_step(b, -1);
        code = sqlite3_backup_finish(b);
    } else if (code == SQLITE_OK) {
        code = sqlite3_errcode(to);
    }
    sqlite3_close(to);
    if (code == SQLITE_OK) return HP_OK;
    return hp_fail(err, HP_EIO, "cannot copy %s to %s: %s", from->path, path, sqlite3_errstr(code));
}

/* Running a run.db again keeps its prediction and drops its measurements. */
static hp_status forget_runs(hp_db *db, hp_error *err) {
    static const char *const DELETE[] = {
        "DELETE FROM span WHERE run IN (SELECT id FROM run WHERE kind = 'exec')",
        "DELETE FROM counter WHERE run IN (SELECT id FROM run WHERE kind = 'exec')",
        "DELETE FROM task WHERE run IN (SELECT id FROM run WHERE kind = 'exec')",
        "DELETE FROM run WHERE kind = 'exec'"};
    for (int i = 0; i < 4; i++) HP_TRY(hp_db_exec(db, err, DELETE[i], ""));
    return HP_OK;
}

static hp_status forget(workspace *w, hp_error *err) {
    hp_db db = {0};
    hp_status s = hp_db_open_rw(w->db, &db, err);
    if (s == HP_OK) s = forget_runs(&db, err);
    if (s == HP_OK) s = hp_db_commit(&db, err);
    hp_db_close(&db);
    return s;
}

hp_status workspace_copy(workspace *w, hp_db *plan, hp_error *err) {
    HP_TRY(copy_database(w->db, plan, err));
    return forget(w, err);
}

static hp_status has_spans(hp_db *db, int64_t run, bool *any, hp_error *err) {
    sqlite3_stmt *st = NULL;
    HP_TRY(hp_db_prepare(db, "SELECT 1 FROM span WHERE run = ? LIMIT 1", &st, err));
    hp_db_bind(st, "i", run);
    const hp_status s = hp_db_next(db, st, any, err);
    sqlite3_finalize(st);
    return s;
}

static hp_status merge_rings(workspace *w, const hp_plan *plan, int status, bool *recorded, hp_error *err) {
    char strategy[HP_STRATEGY_TEXT];
    const hp_run_info info = {.kind = "exec",
                              .plan_hash = plan->hash.hex,
                              .machine = plan->machine.name,
                              .device = plan->device->name,
                              .strategy = hp_strategy_text(&plan->strategy, strategy),
                              .seed = plan->seed,
                              .ranks = hp_program_ranks(plan->program)};
    hp_db db = {0};
    int64_t run = 0;
    int missing = 0;
    hp_status s = hp_db_open_rw(w->db, &db, err);
    if (s == HP_OK) s = hp_trace_begin(&db, &info, plan->program, plan->graph, &run, err);
    if (s == HP_OK) s = hp_trace_merge(&db, run, w->dir, info.ranks, &missing, err);
    if (s == HP_OK) s = hp_trace_end(&db, run, status, err);
    if (s == HP_OK) s = has_spans(&db, run, recorded, err);
    if (s == HP_OK) s = hp_db_commit(&db, err);
    if (s != HP_OK) *recorded = false;
    hp_db_close(&db);
    return s;
}

/* Places the plan's ranks as on its machine. Nodes that are not filled one after another need names. */
static hp_status place_ranks(workspace *w, const hp_plan *plan, cli_launch *l, hp_error *err) {
    given_nodes given;
    const hp_program *p = plan->program;
    if (!p->n_seat || l->ranks == 1) return HP_OK;
    HP_TRY(given_nodes_read(l->hostfile, &given, err));
    if (given.nodes == 1) return HP_OK;
    if (!l->hostfile)
        return hp_fail(err, HP_EPLAN,
                       "the plan deals its ranks to nodes by place=: name the nodes with --hostfile, or give "
                       "--plan a strategy without place=");
    int32_t *node = hp_alloc(sizeof *node * (size_t)l->ranks);
    for (int r = 0; r < l->ranks; r++) node[r] = hp_rank_node(p, &plan->machine, r);
    snprintf(w->hosts, sizeof w->hosts, "%s/hosts", w->dir);
    const hp_status s = given_nodes_deal(l->hostfile, node, l->ranks, w->hosts, err);
    free(node);
    l->hostfile = w->hosts;
    l->in_order = true;
    return s;
}

/* Describes memory needs for the message when a rank is killed for lack of memory. */
static void describe_needs(const hp_plan *plan, cli_launch *l) {
    const hp_program *p = plan->program;
    int64_t all = 0, most = 0;
    char a[32], b[32];
    for (int r = 0; r < p->n_role; r++) {
        all += p->role[r].arena_bytes;
        if (p->role[r].arena_bytes > most) most = p->role[r].arena_bytes;
    }
    snprintf(l->needs, sizeof l->needs,
             "the plan takes %s for %d rank%s, at most %s for one, beside their processes",
             hp_format_bytes((double)all * hp_program_ranks(p) / p->n_role, a), hp_program_ranks(p),
             hp_program_ranks(p) == 1 ? "" : "s", hp_format_bytes((double)most, b));
}

hp_status workspace_launch(workspace *w, const hp_plan *plan, cli_launch *l, hp_error *err) {
    l->plan = w->db;
    l->scratch = w->dir;
    l->ranks = hp_program_ranks(plan->program);
    l->on_gpus = hp_device_on_gpu(plan->device);
    describe_needs(plan, l);
    const int32_t per_node = plan->strategy.clients * plan->machine.devices_per_node;
    l->per_node = l->ranks <= per_node * plan->machine.nodes ? per_node : 0;
    return place_ranks(w, plan, l, err);
}

/* Finds the hostfile's name of a dead rank's node, and the ranks of a lost node. Nodes are filled in order,
 * or as dealt. */
static void name_lost(const hp_plan *plan, const char *hostfile, bool known, cli_lost *lost, hp_error *err) {
    const hp_program *p = plan->program;
    const char *before = ":";
    if (!known || !hostfile) return;
    if (!lost->node[0] && lost->rank >= 0)
        given_nodes_name(hostfile, hp_rank_node(p, &plan->machine, lost->rank), lost->node,
                         sizeof lost->node);
    else
        for (int r = 0; lost->node[0] && r < hp_program_ranks(p); r++) {
            char name[sizeof lost->node];
            const size_t n = strlen(err->text);
            if (!given_nodes_name(hostfile, hp_rank_node(p, &plan->machine, r), name, sizeof name) ||
                strcmp(name, lost->node) != 0)
                continue;
            snprintf(err->text + n, sizeof err->text - n, "%s rank %d",
                     *before == ':' ? "; lost are" : before, r);
            before = ",";
        }
}

hp_status workspace_run(workspace *w, const hp_plan *plan, cli_launch *l, bool *recorded, hp_error *err) {
    *recorded = false;
    const char *hostfile = l->hostfile;
    HP_TRY(workspace_launch(w, plan, l, err));
    const hp_status outcome = cli_launch_run(l, err);
    if (outcome == HP_EDEAD && l->lost)
        name_lost(plan, hostfile, l->in_order || l->per_node > 0, l->lost, err);
    hp_error own = {.code = HP_OK, .text = ""};
    const hp_status s = merge_rings(w, plan, (int)outcome, recorded, &own);
    if (outcome == HP_OK && s != HP_OK) return hp_fail(err, s, "%s", own.text);
    return outcome;
}

hp_status workspace_recover(workspace *w, const hp_plan *plan, hp_status status, bool *recorded,
                            hp_error *err) {
    HP_TRY(forget(w, err)); /* it may have been killed while merging */
    return merge_rings(w, plan, (int)status, recorded, err);
}

/* Creates a second name (a link), so that a run.db exists at every moment; on file systems without links,
 * renames it. */
static bool keep_as(const char *from, const char *to) {
    if (link(from, to) == 0) return true;
    return errno != EEXIST && access(to, F_OK) != 0 && rename(from, to) == 0;
}

/* Derives NAME-1.db, NAME-2.db, ... from NAME.db. */
static void number_name(const char *path, int i, char *out, size_t size) {
    const char *name = strrchr(path, '/'), *suffix = strrchr(name ? name : path, '.');
    const int stem = (int)(suffix ? suffix - path : (long)strlen(path));
    snprintf(out, size, "%.*s-%d%s", stem, path, i, suffix ? suffix : "");
}

void workspace_free_name(workspace *w) {
    char next[sizeof w->final], first[sizeof w->final];
    strcpy(first, w->final);
    for (int i = 1; access(w->final, F_OK) == 0; i++) {
        number_name(first, i, next, sizeof next);
        strcpy(w->final, next);
    }
}

hp_status workspace_keep(workspace *w, hp_error *err) {
    if (access(w->final, F_OK) != 0) return HP_OK;
    for (int i = 1;; i++) {
        number_name(w->final, i, w->kept, sizeof w->kept);
        if (keep_as(w->final, w->kept)) return HP_OK;
        const int why = errno;
        if (access(w->kept, F_OK) == 0) continue; /* taken */
        return hp_fail(err, HP_EIO, "cannot keep %s as %s: %s; --no-history replaces it", w->final, w->kept,
                       strerror(why));
    }
}

hp_status workspace_commit(workspace *w, hp_error *err) {
    return hp_new_file_commit(w->db, w->final, err);
}
