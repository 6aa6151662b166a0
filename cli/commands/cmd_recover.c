/* cmd_recover.c - recovers runs that were killed together with hplan: turns their traces into databases and
 * removes what dead processes left behind. */
#include "cli/launch/leftovers.h"
#include "cli/launch/owners.h"
#include "cli/launch/workspace.h"
#include "cli/show/frame.h"
#include "cli/show/next.h"
#include "base/new_file.h"
#include "machines/quota.h"

#include <stddef.h>
#include <string.h>
#include <unistd.h>

typedef struct options {
    bool json;
    const char *output;
} options;

enum { PATH = 4200, SUFFIX = 11 /* ".tmp-XXXXXX" */ };

typedef struct recovery {
    const options *o;
    json_t *list;     /* one entry per folder */
    const char *last; /* trace that was recovered; NULL: none was */
} recovery;

static void tell(recovery *r, const char *dir, const char *state, const char *trace, const char *words) {
    char plain[PATH];
    if (!r->o->json) printf("%s: %s%s\n", cli_plain(dir, plain, sizeof plain), words, trace ? trace : "");
    json_array_append_new(r->list,
                          json_pack("{s:s, s:s, s:s*}", "folder", dir, "state", state, "trace", trace));
}

static hp_status read_plan(hp_arena *arena, const char *path, hp_plan *plan, hp_error *err) {
    hp_db db = {0};
    HP_TRY(hp_db_open(path, &db, err));
    const hp_status s = hp_plan_read(arena, &db, plan, err);
    hp_db_close(&db);
    return s;
}

/* Removes what dead processes left behind; leaves other jobs alone. */
static void sweep(const char *dir) {
    owner list[OWNERS];
    for (int i = owners_read(dir, list); i-- > 0;)
        if (strcmp(list[i].what, "launcher") == 0) leftovers_sweep_mpirun(list[i].pid);
    hp_quota_sweep("");
}

/* A run that had done nothing leaves nothing. */
static hp_status recover(frame *f, recovery *r, const char *dir, hp_error *err) {
    workspace w;
    hp_plan plan;
    bool recorded = false;
    char final[PATH];
    snprintf(final, sizeof final, "%s", dir);
    if (strlen(final) > SUFFIX) final[strlen(final) - SUFFIX] = '\0';
    workspace_adopt(dir, r->o->output ? r->o->output : final, &w);
    HP_TRY(hp_new_file_check(w.final, err));
    if (access(w.db, F_OK) == 0) {
        HP_TRY(read_plan(f->arena, w.db, &plan, err));
        HP_TRY(workspace_recover(&w, &plan, HP_EDEAD, &recorded, err));
    }
    workspace_free_name(&w);
    if (recorded) HP_TRY(workspace_commit(&w, err));
    sweep(dir);
    workspace_close(&w);
    if (!recorded) {
        tell(r, dir, "empty", NULL, "had done no task yet; removed");
        return HP_OK;
    }
    r->last = hp_arena_strdup(f->arena, w.final);
    tell(r, dir, "recovered", r->last, "the trace of a run that was killed is now ");
    return HP_OK;
}

static hp_status look_at(frame *f, recovery *r, const char *dir, hp_error *err) {
    char words[400];
    owner who = {.pid = 0};
    switch (owners_of(dir, &who)) {
    case OWNED_BY_NOBODY:
        return recover(f, r, dir, err);
    case OWNED_BY_RUN:
        snprintf(words, sizeof words, "its run goes on: %s is process %d", who.what, (int)who.pid);
        tell(r, dir, "running", NULL, words);
        return HP_OK;
    case OWNED_ELSEWHERE:
        snprintf(words, sizeof words, "is a run's of another host: hplan recover there, on %.255s", who.host);
        tell(r, dir, "elsewhere", NULL, words);
        return HP_OK;
    case OWNED_UNKNOWN:
        break;
    }
    return hp_fail(err, HP_EDATA, "%s holds no file `processes`: it is not the folder of a run", dir);
}

static hp_status look_at_all(frame *f, recovery *r, const char *what, hp_error *err) {
    owner list[OWNERS];
    glob_t found;
    if (owners_read(what, list) > 0) return look_at(f, r, what, err);
    const size_t n = leftovers_beside(what, &found);
    hp_status s = HP_OK;
    for (size_t i = 0; i < n && s == HP_OK; i++)
        if (owners_read(found.gl_pathv[i], list) > 0) s = look_at(f, r, found.gl_pathv[i], err);
    globfree(&found);
    if (s == HP_OK && json_array_size(r->list) == 0)
        return hp_fail(err, HP_EDATA, "no run has left a folder beside %s: nothing to recover", what);
    return s;
}

static hp_status recover_all(frame *f, hp_error *err) {
    recovery r = {.o = f->options, .list = json_array()};
    const hp_status s = look_at_all(f, &r, f->n_word ? f->word[0] : "run.db", err);
    if (s != HP_OK) {
        json_decref(r.list);
        return s;
    }
    if (r.o->json) return cli_print_json(json_pack("{s:i, s:o}", "schema", 1, "folders", r.list), err);
    json_decref(r.list);
    if (r.last) {
        next_command next = next_start("compare");
        next_word(&next, r.last);
        next_print(stdout, &next);
    }
    return cli_finish_stdout(err);
}

int cmd_recover(int argc, char **argv) {
    static const frame_option list[] = {
        {"output", 'o', "FILE", offsetof(options, output), 0, "name of the trace"},
        {"json", 'j', NULL, offsetof(options, json), 0, "one JSON object"},
        {0}};
    static const frame_command command = {
        .option = list,
        .usage = "[RUN.db|FOLDER]",
        .doc = "The traces of runs that were killed together with hplan, from the folders that they have "
               "left beside RUN.db: "
               "an earlier RUN.db stays. Removes what they have left, and nothing of runs that go on.",
        .max_word = 1,
        .run = recover_all};
    options o = {.json = false};
    return frame_run(&command, &o, argc, argv);
}
