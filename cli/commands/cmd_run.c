/* cmd_run.c - executes a stored plan through hplan-exec and records its trace beside its prediction. */
#include "cli/cli.h"
#include "cli/options/run_options.h"
#include "cli/show/dry_run.h"
#include "cli/show/run_show.h"
#include "cli/run/run_again.h"
#include "cli/run/run_disk.h"
#include "cli/commands/command_weights.h"
#include "cli/history/record.h"
#include "cli/launch/leftovers.h"
#include "cli/launch/workspace.h"
#include "networks/graph/samples.h"
#include "base/new_file.h"
#include "base/units.h"
#include "sim/search/conditions.h"
#include "sim/search/predict.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* A strategy, or the number of a candidate, which has its own batch. */
static hp_status pick_strategy(hp_arena *arena, hp_db *db, const char *which, hp_plan *plan, hp_error *err) {
    if (strspn(which, "0123456789") != strlen(which))
        return hp_conditions_strategy(which, plan, &plan->strategy, err);
    hp_candidate *c = NULL;
    hp_rejected *r = NULL;
    int n = 0, n_rejected = 0;
    int64_t rank = 0;
    HP_TRY(hp_candidates_read(arena, db, &c, &n, &r, &n_rejected, err));
    if (n == 0) return hp_fail(err, HP_EPLAN, "%s holds no candidates: give --plan a strategy", db->path);
    HP_TRY(hp_parse_int(which, "--plan", 1, n, &rank, err));
    plan->batch = c[rank - 1].batch;
    plan->step_s = c[rank - 1].step_s;
    return hp_strategy_parse(c[rank - 1].strategy, &plan->strategy, err);
}

/* Another candidate or device is another plan, with a prediction of its own. */
static hp_status rebuild(hp_arena *arena, hp_db *db, workspace *w, hp_plan *plan, hp_error *err) {
    hp_eval_setup setup;
    hp_prediction p = {0};
    hp_candidate *c = NULL;
    hp_rejected *r = NULL;
    int n = 0, n_rejected = 0;
    HP_TRY(hp_candidates_read(arena, db, &c, &n, &r, &n_rejected, err));
    HP_TRY(hp_conditions_read(arena, db, plan, &setup, err));
    HP_TRY(hp_predict(arena, plan, &setup, &p, err));
    return hp_predict_store(w->db, plan, &p, &(hp_ranking){c, n, r, n_rejected}, err);
}

static hp_status check_weights(const run_options *o, const hp_plan *plan, hp_error *err) {
    if (o->init && o->random_weights)
        return hp_fail(err, HP_EUSAGE, "--init and --random-weights exclude each other: give one");
    const bool real = cli_data_is_real(run_options_passed(o, "data"), run_options_passed(o, "input"));
    return plan->mode == HP_MODE_INFER && !o->init && real
               ? cli_weights_random(o->random_weights, "--init", err)
               : HP_OK;
}

/* Before minutes of anything, and before what is said of the machine. */
static hp_status check_file(const char *option, const char *path, hp_error *err) {
    if (!path || access(path, R_OK) == 0) return HP_OK;
    return hp_fail(err, HP_EDATA, "%s %s: %s", option, path, strerror(errno));
}

/* Data is a folder or a file unless it is a name, or several words of one (patches:SLIDE,size=256). */
static hp_status check_data(const run_options *o, const char *option, const char *key, hp_error *err) {
    const char *data = run_options_passed(o, key);
    const bool named =
        !data || strpbrk(data, ":,") || !cli_data_is_real(data, NULL) || strcmp(data, "fashion-mnist") == 0;
    return check_file(option, named ? NULL : data, err);
}

static hp_status check_files(const run_options *o, hp_error *err) {
    HP_TRY(check_data(o, "--data", "data", err));
    HP_TRY(check_data(o, "--input", "input", err));
    return check_file("--init", o->init, err);
}

/* Checks that this machine can run the plan. With --dry-run, as on a login node, a shortage is only a note; a
 * bad hostfile is always an error. */
static hp_status check_machine(hp_arena *arena, const run_options *o, const hp_plan *plan,
                               const run_here *here, hp_error *err) {
    const hp_status s = run_here_check(arena, plan, here, err);
    if (s == HP_OK || s == HP_EDATA || !o->dry_run) return s;
    fprintf(stderr, "hplan: note: run would stop here: %s\n", err->text);
    err->code = HP_OK;
    return HP_OK;
}

/* Only the library that trains on processors divides a rank's work among threads. */
static void tell_threads(const run_options *o, const hp_plan *plan) {
    const bool cpu = !hp_device_on_gpu(plan->device),
               divides = hp_device_kind_of(plan->device) == HP_DEVICE_CPU && plan->mode == HP_MODE_TRAIN;
    if (o->threads > 1 && cpu && !divides)
        fprintf(stderr,
                "hplan: note: --threads %lld: %s a rank computes with one thread, the others only read "
                "images; fix: "
                "more ranks, as simulate --strategy dp=%lld\n",
                (long long)o->threads,
                hp_device_kind_of(plan->device) == HP_DEVICE_CPU ? "in inference" : "on this device",
                (long long)o->threads);
}

static hp_status prepare(hp_arena *arena, const run_options *o, const run_again *a, hp_db *db, workspace *w,
                         hp_plan *plan, hp_error *err) {
    HP_TRY(hp_db_open(o->path, db, err));
    HP_TRY(hp_plan_read(arena, db, plan, err));
    const hp_plan stored = *plan;
    if (o->plan) HP_TRY(pick_strategy(arena, db, o->plan, plan, err));
    if (o->device) HP_TRY(hp_plan_on_device(plan, o->device, err));
    HP_TRY(check_files(o, err));
    HP_TRY(check_weights(o, plan, err));
    tell_threads(o, plan);
    leftovers_tell(o->trace);
    HP_TRY(hp_new_file_check_database(o->trace, err));
    HP_TRY(workspace_open(o->trace, w, err));
    const run_here here = {.path = o->path,
                           .hostfile = a->hostfile,
                           .saves = run_options_passed(o, "checkpoint") != NULL,
                           .eval = run_options_passed(o, "eval") != NULL,
                           .force = o->force};
    hp_prediction p = {0};
    bool fitted = false;
    HP_TRY(run_fit_plan(arena, db, &a->fit, &here, plan, &p, &fitted, err));
    const bool same = hp_strategy_equal(&stored.strategy, &plan->strategy) && stored.device == plan->device &&
                      stored.batch == plan->batch;
    if (fitted)
        HP_TRY(hp_predict_store(w->db, plan, &p, NULL, err));
    else
        HP_TRY(same ? workspace_copy(w, db, err) : rebuild(arena, db, w, plan, err));
    HP_TRY(check_machine(arena, o, plan, &here, err));
    const run_disk disk = {.checkpoints = run_options_passed(o, "checkpoint"),
                           .keep = run_options_passed(o, "keep"),
                           .save = run_options_passed(o, "save")};
    return run_disk_check(arena, plan, &disk, err);
}

/* Commits the trace. An earlier trace is kept, unless a complete run replaces it; after a failed write it
 * also keeps its name. */
static hp_status commit(const run_options *o, workspace *w, hp_status outcome, hp_error *err) {
    const bool stopped = outcome == HP_ESTALL || outcome == HP_EDEAD;
    if (outcome == HP_ECREATE || outcome == HP_EIO)
        workspace_free_name(w);
    else if (!o->no_history || outcome != HP_OK)
        HP_TRY(workspace_keep(w, err));
    HP_TRY(workspace_commit(w, err));
    if (outcome != HP_OK)
        fprintf(stderr, "hplan: the trace up to there is in %s%s%s%s%s\n", w->final,
                w->kept[0] ? "; the one before is now " : "", w->kept,
                stopped ? "; who waited for whom: hplan diagnose " : "", stopped ? w->final : "");
    return HP_OK;
}

/* Adds prediction and measurement to the history. An unreadable trace does not fail the run. */
static run_outcome conclude(hp_arena *arena, const run_options *o, const hp_plan *plan) {
    run_outcome r;
    hp_error unread = {.code = HP_OK, .text = ""};
    if (run_outcome_read(arena, plan, o->trace, &r, &unread) != HP_OK)
        fprintf(stderr, "hplan: note: the run is not compared: %s\n", unread.text);
    else if (!o->no_history)
        run_record(plan, &r);
    return r;
}

static hp_status execute(hp_arena *arena, const run_options *o, const run_again *a, hp_db *db, workspace *w,
                         cli_lost *lost, hp_error *err) {
    hp_plan plan;
    HP_TRY(prepare(arena, o, a, db, w, &plan, err));
    run_show show;
    const char *deadline = run_options_passed(o, "deadline"); /* hplan-exec checks it */
    run_show_start(&show, o->json);
    cli_launch l = {.threads = (int)o->threads,
                    .launcher = o->launcher,
                    .hostfile = a->hostfile,
                    .deadline_s = deadline ? strtod(deadline, NULL) : 0,
                    .saves = run_options_passed(o, "checkpoint") != NULL,
                    .line = run_show_line,
                    .self = &show,
                    .lost = lost};
    for (int i = 0; i < o->n_pass; i++) l.option[l.n_option++] = o->pass[i];
    const char *weights = NULL;
    HP_TRY(cli_weights_file(arena, o->init, plan.image_h, plan.image_w, w->dir, &weights, err));
    if (weights) l.option[l.n_option++] = hp_arena_printf(arena, "--init=%s", weights);
    if (o->dry_run) {
        HP_TRY(workspace_launch(w, &plan, &l, err));
        return dry_run_show(&plan, &l, o->trace, o->json, err);
    }
    bool recorded = false;
    run_status status;
    HP_TRY(run_status_begin(&status, w, &plan, run_options_passed(o, "checkpoint"), o->metrics, err));
    show.status = &status;
    show.samples = hp_samples_name(plan.graph);
    const hp_status outcome = workspace_run(w, &plan, &l, &recorded, err);
    run_status_end(&status, outcome);
    run_show_end(&show);
    if (recorded) HP_TRY(commit(o, w, outcome, outcome == HP_OK ? err : NULL));
    if (outcome != HP_OK || !recorded) {
        run_show_final(&show, NULL, o->trace, w->kept);
        return outcome;
    }
    const run_outcome result = conclude(arena, o, &plan);
    run_show_final(&show, &result, o->trace, w->kept);
    return cli_finish_stdout(err);
}

static hp_status attempt(const run_options *o, const run_again *a, cli_lost *lost, hp_error *err) {
    hp_arena *arena = hp_arena_new();
    hp_db db = {0};
    workspace w = {.dir = ""};
    *lost = (cli_lost){.rank = -1};
    const hp_status s = execute(arena, o, a, &db, &w, lost, err);
    workspace_close(&w);
    hp_db_close(&db);
    hp_arena_free(arena);
    return s;
}

static hp_status run(hp_arena *arena, run_options *o, hp_error *err) {
    if (o->restarts && !run_options_passed(o, "checkpoint"))
        return hp_fail(err, HP_EUSAGE, "--restarts goes on from checkpoints: give --checkpoint DIR");
    run_again a = run_again_first(o);
    cli_lost lost;
    hp_status s;
    do s = err->code = attempt(o, &a, &lost, err);
    while (s != HP_OK && run_again_may(arena, o, &a, &lost, err));
    run_again_end(&a);
    return s == HP_OK ? HP_OK : err->code;
}

int cmd_run(int argc, char **argv) {
    run_options o;
    hp_error err = {.code = HP_OK, .text = ""};
    hp_arena *arena = hp_arena_new();
    hp_status s = run_options_parse(arena, argc, argv, &o, &err);
    if (s == HP_OK) s = run(arena, &o, &err);
    hp_arena_free(arena);
    if (s == HP_OK) return 0;
    err.code = s;
    return cli_report(&err);
}
