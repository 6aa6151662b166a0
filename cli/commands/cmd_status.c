/* cmd_status.c - what a run does now: its status file, and its ranks' board where they are on this node. */
#include "cli/launch/run_status.h"
#include "cli/show/frame.h"
#include "base/clock.h"
#include "base/input.h"
#include "base/units.h"
#include "checkpoints/checkpoint_folder.h"
#include "networks/graph/samples.h"
#include "plan/program/print.h"
#include "traces/faults/board.h"
#include "traces/trace.h"

#include <errno.h>
#include <glob.h>
#include <math.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

typedef struct options {
    bool json, follow;
} options;

enum { MOST_SHOWN = 16, PATH = 4200 };

/* --- which run --- */

/* The one that was written last: others may be of runs that were killed. */
static const char *newest_of(const glob_t *found) {
    struct stat st;
    time_t latest = 0;
    const char *newest = found->gl_pathv[0];
    for (size_t i = 0; i < found->gl_pathc; i++) {
        if (stat(found->gl_pathv[i], &st) != 0 || st.st_mtime < latest) continue;
        latest = st.st_mtime;
        newest = found->gl_pathv[i];
    }
    return newest;
}

/* Says what is there instead; always an error. */
static hp_status no_run(const char *what, hp_error *err) {
    struct stat st;
    hp_db db = {0};
    int64_t run = -1;
    if (stat(what, &st) != 0)
        return hp_fail(err, HP_EDATA,
                       "no run is writing %s: give the name of its trace (--trace), or its folder", what);
    if (S_ISDIR(st.st_mode))
        return hp_fail(err, HP_EDATA, "%s holds no status.json: it is not the folder of a run", what);
    HP_TRY(hp_db_open(what, &db, err));
    const hp_status found = hp_trace_find(&db, "exec", &run, err);
    hp_db_close(&db);
    HP_TRY(found);
    if (run < 0) return hp_fail(err, HP_EDATA, "%s: holds no executed run; `hplan run` makes one", what);
    return hp_fail(err, HP_EDATA, "no run is writing %s now: what it holds is shown by hplan compare %s",
                   what, what);
}

/* The folder, or the newest beside a trace of that name. */
static hp_status find_folder(const char *what, char dir[PATH], hp_error *err) {
    char pattern[PATH];
    glob_t found;
    snprintf(pattern, sizeof pattern, "%s/status.json", what);
    if (access(pattern, R_OK) == 0) {
        snprintf(dir, PATH, "%s", what);
        return HP_OK;
    }
    snprintf(pattern, sizeof pattern, "%s.tmp-*/status.json", what);
    const bool any = glob(pattern, 0, NULL, &found) == 0 && found.gl_pathc > 0;
    const char *newest = any ? newest_of(&found) : "";
    if (any) snprintf(dir, PATH, "%.*s", (int)(strlen(newest) - strlen("/status.json")), newest);
    if (any && found.gl_pathc > 1)
        fprintf(stderr, "hplan: note: %zu folders of runs lie beside %s; this is the newest, %s\n",
                found.gl_pathc, what, dir);
    globfree(&found);
    if (any) return HP_OK;
    return no_run(what, err);
}

typedef struct view {
    hp_arena *arena;
    char dir[PATH];
    json_t *o;
    int ranks;
    hp_plan plan;
    bool has_plan;
    hp_board_entry *before, *now; /* NULL: no board to read */
} view;

static double number(const view *v, const char *key) {
    const json_t *n = json_object_get(v->o, key);
    return json_is_number(n) ? json_number_value(n) : NAN;
}

static const char *text(const view *v, const char *key) {
    const char *s = json_string_value(json_object_get(v->o, key));
    return s ? s : "";
}

/* Is the process that started it there still? Of another node nobody can tell: true. */
static bool goes_on(const view *v) {
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    if (strcmp(host, text(v, "host")) != 0) return true;
    const double pid = number(v, "pid"); /* the file may be anyone's */
    return pid > 1 && pid < INT32_MAX && (kill((pid_t)pid, 0) == 0 || errno == EPERM);
}

/* The plan names the tasks; without it, or the board, less is told. */
static void read_ranks(view *v) {
    char path[PATH + 16];
    hp_db db = {0};
    hp_error ignored;
    snprintf(path, sizeof path, "%s/run.db", v->dir);
    v->has_plan = hp_db_open(path, &db, &ignored) == HP_OK &&
                  hp_plan_read(v->arena, &db, &v->plan, &ignored) == HP_OK &&
                  hp_program_ranks(v->plan.program) == v->ranks;
    hp_db_close(&db);
    const struct timespec pause = {.tv_sec = 0, .tv_nsec = 300000000};
    snprintf(path, sizeof path, "%s/board", v->dir);
    v->before = HP_NEW(v->arena, hp_board_entry, v->ranks);
    v->now = HP_NEW(v->arena, hp_board_entry, v->ranks);
    if (hp_board_read(path, v->ranks, v->before, &ignored) != HP_OK) v->now = NULL;
    if (v->now) nanosleep(&pause, NULL);
    if (v->now && hp_board_read(path, v->ranks, v->now, &ignored) != HP_OK) v->now = NULL;
}

static hp_status read_view(view *v, const char *what, hp_error *err) {
    char path[PATH + 16];
    json_error_t why;
    HP_TRY(find_folder(what, v->dir, err));
    snprintf(path, sizeof path, "%s/status.json", v->dir);
    FILE *f = hp_input_fopen(path);
    snprintf(why.text, sizeof why.text, "%s", f ? "" : strerror(errno));
    v->o = f ? json_loadf(f, 0, &why) : NULL;
    if (f) fclose(f);
    const double ranks = v->o ? number(v, "ranks") : 0;
    v->ranks = ranks >= 1 && ranks <= 1 << 20 ? (int)ranks : 0;
    if (v->ranks == 0)
        return hp_fail(err, HP_EDATA, "%s: not a run's status: %.80s", path,
                       v->o ? "no number of ranks" : why.text);
    read_ranks(v);
    return HP_OK;
}

/* --- ranks --- */

/* What a rank is doing; "" where nothing is known. */
static void label_of(const view *v, int rank, char out[200]) {
    const hp_board_entry *e = &v->now[rank];
    out[0] = '\0';
    if (!v->has_plan || e->task < 0) return;
    const hp_program *p = v->plan.program;
    const hp_role *r = &p->role[rank % p->n_role];
    if (e->task < r->n_task) hp_task_label(p, v->plan.graph, r, e->task, out, 200);
}

static bool is_still(const view *v, int rank) {
    return v->now[rank].here && v->now[rank].beat == v->before[rank].beat;
}

static json_t *ranks_json(const view *v) {
    json_t *all = json_array();
    for (int r = 0; v->now && r < v->ranks; r++) {
        char label[200];
        if (!v->now[r].here) continue;
        label_of(v, r, label);
        json_array_append_new(all,
                              json_pack("{s:i, s:i, s:s, s:b}", "rank", r, "step", (int)v->now[r].iter + 1,
                                        "task", label, "still", is_still(v, r)));
    }
    return all;
}

/* Ranks that stand still first, then the hindmost. */
static void print_ranks(const view *v) {
    int shown = 0, here = 0;
    char label[200];
    for (int r = 0; v->now && r < v->ranks; r++) here += v->now[r].here;
    for (int pass = 0; v->now && pass < 2; pass++)
        for (int r = 0; r < v->ranks && shown < MOST_SHOWN; r++) {
            if (!v->now[r].here || is_still(v, r) != (pass == 0)) continue;
            label_of(v, r, label);
            printf("  rank %-4d step %-6d %s%s\n", r, v->now[r].iter + 1, label,
                   pass == 0 ? "  gives no sign of life" : "");
            shown++;
        }
    if (here > shown) printf("  and %d more\n", here - shown);
}

/* --- the run --- */

static void print_checkpoint(view *v) {
    const char *dir = text(v, "checkpoint");
    int64_t *step;
    int n = 0;
    hp_error ignored;
    char plain[PATH];
    if (!*dir) return;
    if (hp_checkpoint_list(v->arena, dir, &step, &n, &ignored) != HP_OK || n == 0)
        printf("checkpoints: none yet in %s\n", cli_plain(dir, plain, sizeof plain));
    else
        printf("checkpoints: step %lld is saved in %s\n", (long long)step[0],
               cli_plain(dir, plain, sizeof plain));
}

static void print_pace(const view *v) {
    char step[32], predicted[32], left[32];
    const double step_s = number(v, "mean_step_s"), to_go = number(v, "steps") - number(v, "step");
    if (isnan(step_s)) return;
    printf("mean step %s, predicted %s; %.3g %s/s", hp_format_seconds(step_s, step),
           hp_format_seconds(number(v, "predicted_s"), predicted), number(v, "batch") / step_s,
           v->has_plan ? hp_samples_name(v->plan.graph) : "samples");
    if (to_go > 0) printf("; about %s to go", hp_format_seconds(to_go * step_s, left));
    printf("\n");
}

static void print_view(view *v) {
    char strategy[300], net[100], device[32], since[32];
    const double started = number(v, "started"), loss = number(v, "loss");
    printf("%s by %s on %d rank%s of %s, process %.0f, for %s\n", cli_plain(text(v, "net"), net, sizeof net),
           cli_plain(text(v, "strategy"), strategy, sizeof strategy), v->ranks, v->ranks == 1 ? "" : "s",
           cli_plain(text(v, "device"), device, sizeof device), number(v, "pid"),
           hp_format_seconds((double)time(NULL) - started, since));
    printf("step %.0f", number(v, "step"));
    if (!isnan(number(v, "steps"))) printf(" of %.0f", number(v, "steps"));
    if (!isnan(loss)) printf(", loss %.4f", loss);
    printf("\n");
    print_pace(v);
    print_checkpoint(v);
    print_ranks(v);
    if (goes_on(v)) return;
    printf("its process is gone: it was killed, and left %s; hplan diagnose %s says what its ranks were at\n",
           v->dir, v->dir);
}

static hp_status show(const char *what, const options *o, bool *over, hp_error *err) {
    view v = {.arena = hp_arena_new()};
    hp_status s = read_view(&v, what, err);
    *over = s != HP_OK || !goes_on(&v);
    if (s == HP_OK && o->json) {
        json_object_set_new(v.o, "up", json_integer(!*over));
        json_object_set_new(v.o, "rank", ranks_json(&v));
        s = cli_print_json(json_incref(v.o), err);
    } else if (s == HP_OK) {
        print_view(&v);
        s = cli_finish_stdout(err);
    }
    json_decref(v.o);
    hp_arena_free(v.arena);
    return s;
}

static hp_status status(frame *f, hp_error *err) {
    const options *o = f->options;
    const char *what = f->n_word ? f->word[0] : "run.db";
    bool over = false;
    HP_TRY(show(what, o, &over, err));
    while (o->follow && !over) {
        const struct timespec pause = {.tv_sec = 1, .tv_nsec = 0};
        hp_error ended = {.code = HP_OK, .text = ""};
        nanosleep(&pause, NULL);
        if (cli_is_terminal(stdout) && !o->json) printf("\033[H\033[J");
        if (show(what, o, &over, &ended) != HP_OK) break; /* the run is over, its folder gone */
    }
    return HP_OK;
}

int cmd_status(int argc, char **argv) {
    static const frame_option list[] = {
        {"follow", 'f', NULL, offsetof(options, follow), 0, "again every second, until the run is over"},
        {"json", 'j', NULL, offsetof(options, json), 0, "one JSON object"},
        {0}};
    static const frame_command command = {.option = list,
                                          .usage = "[RUN.db|FOLDER]",
                                          .doc = "What a run does now: the one that writes RUN.db (run.db).",
                                          .max_word = 1,
                                          .run = status};
    options o = {.json = false};
    return frame_run(&command, &o, argc, argv);
}
