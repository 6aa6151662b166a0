/* cmd_doctor.c - what this machine offers and what to do next. A table of probes; always exits 0, because a
 * missing part is an answer here. Other programs are asked (hplan links neither MPI nor CUDA), with a time
 * limit each. */
#include "cli/launch/launch_capture.h"
#include "cli/cli.h"
#include "cli/commands/local_gpu.h"
#include "cli/history/history_line.h"
#include "cli/options/simulate.h"
#include "costmodels/table.h"
#include "base/host.h"
#include "base/units.h"
#include "base/version.h"
#include "machines/here.h"

#include <gsl/gsl_version.h>
#include <limits.h>
#include <math.h>
#include <sqlite3.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const double ask_limit_s = 10;

typedef struct finding {
    bool ok;
    char text[700];
    char next[160]; /* what to do about it, "" = nothing */
} finding;

static void say(finding *f, bool ok, const char *text) {
    f->ok = ok;
    cli_plain(text, f->text, sizeof f->text);
}

static void advise(finding *f, const char *next) {
    snprintf(f->next, sizeof f->next, "%s", next);
}

/* First line of what argv prints, "" when there is no such program. */
static const char *first_line(const char *const *argv, char *out, size_t size) {
    if (!cli_capture(argv, ask_limit_s, out, size)) out[0] = 0;
    out[strcspn(out, "\n")] = 0;
    return out;
}

static void probe_build(finding *f, json_t *facts) {
    char text[300];
    snprintf(text, sizeof text, "%s (commit %s), sqlite %s, gsl %s, jansson %s", hp_version(), hp_commit(),
             sqlite3_libversion(), gsl_version, JANSSON_VERSION);
    say(f, true, text);
    json_object_set_new(facts, "version", json_string(hp_version()));
    json_object_set_new(facts, "sqlite", json_string(sqlite3_libversion()));
    json_object_set_new(facts, "gsl", json_string(gsl_version));
}

static const char *vector_unit(void) {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f")) return "AVX-512";
    if (__builtin_cpu_supports("avx2")) return "AVX2";
#endif
    return "no AVX2: slow kernels";
}

static const char *plural(int n) {
    return n == 1 ? "" : "s";
}

static const char *cache_text(const hp_here *h, char *out, size_t n) {
    char l1[32], l2[32], l3[32];
    if (!h->l1_bytes) return "caches unknown";
    snprintf(out, n, "L1 %s, L2 %s, L3 %s", hp_format_bytes((double)h->l1_bytes, l1),
             hp_format_bytes((double)h->l2_bytes, l2),
             h->l3_bytes ? hp_format_bytes((double)h->l3_bytes, l3) : "none");
    return out;
}

/* The text of a limit, or null. */
static json_t *limit_json(const char *limit) {
    return limit[0] ? json_string(limit) : json_null();
}

/* The facts behind `--machine local`: planner, executor and doctor share them. */
static void probe_cores(finding *f, json_t *facts) {
    hp_here h;
    hp_error err;
    char caches[120], text[1000];
    if (hp_here_read(&hp_here_system, &h, &err) != HP_OK) {
        say(f, false, err.text);
        return;
    }
    snprintf(text, sizeof text, "%d of %d core%s (%s), %d hardware thread%s, %d NUMA node%s; %s%s%s", h.cores,
             h.node_cores, plural(h.node_cores), vector_unit(), h.threads, plural(h.threads), h.numa_nodes,
             plural(h.numa_nodes), cache_text(&h, caches, sizeof caches),
             h.cores_limit[0] ? "; limited by " : "", h.cores_limit);
    say(f, true, text);
    const struct {
        const char *key;
        int64_t value;
    } row[] = {{"cores", h.cores},           {"node_cores", h.node_cores}, {"hardware_threads", h.threads},
               {"numa_nodes", h.numa_nodes}, {"l1_bytes", h.l1_bytes},     {"l2_bytes", h.l2_bytes},
               {"l3_bytes", h.l3_bytes}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        json_object_set_new(facts, row[i].key, json_integer(row[i].value));
    json_object_set_new(facts, "cores_limit", limit_json(h.cores_limit));
}

static void probe_memory(finding *f, json_t *facts) {
    hp_here h;
    hp_error err;
    char all[32], node[32], unused[32], text[1000];
    if (hp_here_read(&hp_here_system, &h, &err) != HP_OK) {
        say(f, false, err.text);
        return;
    }
    snprintf(text, sizeof text, "%s of %s, %s of it free%s%s", hp_format_bytes((double)h.memory_bytes, all),
             hp_format_bytes((double)h.node_memory_bytes, node),
             hp_format_bytes((double)h.free_bytes, unused), h.memory_limit[0] ? "; limited by " : "",
             h.memory_limit);
    say(f, true, text);
    json_object_set_new(facts, "memory_bytes", json_integer(h.memory_bytes));
    json_object_set_new(facts, "node_memory_bytes", json_integer(h.node_memory_bytes));
    json_object_set_new(facts, "memory_free_bytes", json_integer(h.free_bytes));
    json_object_set_new(facts, "memory_limit", limit_json(h.memory_limit));
}

static const char *member(const json_t *o, const char *key) {
    const char *text = json_string_value(json_object_get(o, key));
    return text ? text : "?";
}

/* `hplan-exec --version` prints one JSON object: {"hplan-exec": …, "mpi": …, "onednn": …, "cuda": … or null,
 * and what there is of the GPU's part}.
 */
static void probe_executor(finding *f, json_t *facts) {
    char path[PATH_MAX], answer[4096], text[300];
    cli_executor_path(path, sizeof path);
    const bool answered =
        cli_capture((const char *const[]){path, "--version", NULL}, ask_limit_s, answer, sizeof answer);
    json_t *o = answered ? json_loads(answer, 0, NULL) : NULL;
    json_object_set_new(facts, "hplan_exec", o ? json_incref(o) : json_null());
    if (o) {
        snprintf(text, sizeof text, "%s, oneDNN %s, %.80s", member(o, "hplan-exec"), member(o, "onednn"),
                 member(o, "mpi"));
        say(f, true, text);
    } else {
        say(f, false,
            access(path, X_OK) ? "hplan-exec is not beside hplan: simulation only"
                               : "hplan-exec does not answer --version: simulation only");
        advise(f, "./bootstrap build");
    }
    json_decref(o);
}

static bool mpi_is_cuda_aware(void) {
    char all[65536]; /* Open MPI 4.1 prints 15 kB */
    const char *const argv[] = {"ompi_info", "--parsable", "--param", "mpi", "all", "--level", "9", NULL};
    return cli_capture(argv, ask_limit_s, all, sizeof all) &&
           strstr(all, "mpi_built_with_cuda_support:value:true");
}

static void probe_mpirun(finding *f, json_t *facts) {
    char line[200], text[300];
    const bool found = *first_line((const char *const[]){"mpirun", "--version", NULL}, line, sizeof line);
    const bool aware = found && mpi_is_cuda_aware();
    json_object_set_new(facts, "mpirun", found ? json_string(line) : json_null());
    json_object_set_new(facts, "mpi_cuda_aware", json_boolean(aware));
    if (!found) {
        say(f, false, "not in PATH: plans of one rank only (--launcher none)");
        advise(f, "apt install openmpi-bin");
        return;
    }
    snprintf(text, sizeof text, "%s, %s", line, aware ? "CUDA-aware" : "not CUDA-aware: host staging");
    say(f, true, text);
}

static void probe_slurm(finding *f, json_t *facts) {
    const bool inside = getenv("SLURM_JOB_ID") && cli_in_path("srun");
    say(f, inside,
        inside ? "inside an allocation: srun will start the ranks"
               : "no allocation: mpirun will start the ranks");
    json_object_set_new(facts, "slurm", json_boolean(inside));
}

static const char *of_device(const json_t *exec, const hp_device_info *d, const char *suffix) {
    char key[64];
    snprintf(key, sizeof key, "%s%s", d->name, suffix);
    return json_string_value(json_object_get(exec, key));
}

/* Reports hplan-exec's GPU part, or why it has none, and the driver. */
static void probe_gpu(finding *f, json_t *facts) {
    const json_t *exec = json_object_get(facts, "hplan_exec");
    const hp_device_info *d = &hp_devices[HP_DEVICE_CUDA];
    char line[200] = "", text[900];
    const char *part = of_device(exec, d, ""), *why = of_device(exec, d, "_missing"),
               *path = of_device(exec, d, "_part");
    FILE *driver = fopen("/proc/driver/nvidia/version", "re");
    const bool found = driver && fgets(line, sizeof line, driver);
    if (driver) fclose(driver);
    line[strcspn(line, "\n")] = 0;
    snprintf(text, sizeof text, "%.300s%s%.120s%s; %s",
             part  ? part
             : why ? why
                   : "no hplan-exec, no GPU part",
             part && path ? " (" : "", part && path ? path : "", part && path ? ")" : "",
             found ? line : "no NVIDIA driver: simulation and CPU runs only");
    say(f, found && part, text);
    json_object_set_new(facts, "cuda_driver", found ? json_string(line) : json_null());
}

/* Several ranks of one GPU (clients=K) compute beside each other with it, else in time slices. */
static void probe_mps(finding *f, json_t *facts) {
    char pipe[PATH_MAX], text[PATH_MAX + 120];
    const bool found = local_gpu_mps(pipe, sizeof pipe);
    snprintf(text, sizeof text, found ? "running (%s)" : "not running (no %s): clients=K take turns", pipe);
    say(f, found, text);
    json_object_set_new(facts, "mps", json_boolean(found));
}

static void probe_gnuplot(finding *f, json_t *facts) {
    char line[200];
    const bool found = *first_line((const char *const[]){"gnuplot", "--version", NULL}, line, sizeof line);
    say(f, found, found ? line : "not in PATH: no charts");
    if (!found) advise(f, "apt install gnuplot-nox");
    json_object_set_new(facts, "gnuplot", found ? json_string(line) : json_null());
}

static void probe_data(finding *f, json_t *facts) {
    const bool found =
        !access("/usr/share/datasets/fashion-mnist", R_OK); /* Debian's dataset-fashion-mnist */
    say(f, found,
        found ? "Fashion-MNIST installed" : "Fashion-MNIST not installed: synthetic or your own images");
    if (!found) advise(f, "apt install dataset-fashion-mnist");
    json_object_set_new(facts, "fashion_mnist", json_boolean(found));
}

static void say_calibration(finding *f, const hp_cost_table *t, const char *path, double days) {
    const simulate_costs c = simulate_costs_of(t);
    const hp_speed quiet = hp_speed_quiet();
    char text[PATH_MAX + 200], speed[80] = "";
    if (c.has_speed)
        snprintf(speed, sizeof speed, ", usual speed %.2fx the time of the quiet machine",
                 simulate_mean_slowdown(hp_cost_speed(t), &quiet));
    snprintf(text, sizeof text, "%.0f days old%s%s, %s", days,
             c.measured && !c.here ? ", of ANOTHER processor" : "", speed, path);
    say(f, !c.measured || c.here, text);
}

static void probe_calibration(finding *f, json_t *facts) {
    char path[PATH_MAX];
    struct stat st;
    hp_cost_machine_path(hp_devices[HP_DEVICE_CPU].machine, path, sizeof path);
    if (stat(path, &st)) {
        say(f, false, "none: predictions for this machine rest on guesses");
        advise(f, "hplan calibrate");
        json_object_set_new(facts, "calibration_age_s", json_null());
        return;
    }
    const double age_s = difftime(time(NULL), st.st_mtime);
    json_object_set_new(facts, "calibration_age_s", json_real(age_s));
    hp_error err;
    hp_machine m;
    hp_cost_table *t = NULL;
    hp_arena *arena = hp_arena_new();
    hp_status status = hp_machine_load(hp_devices[HP_DEVICE_CPU].machine, &m, &err);
    if (status == HP_OK) status = hp_cost_load(arena, path, &m, &t, &err);
    if (status == HP_OK)
        say_calibration(f, t, path, age_s / 86400);
    else
        say(f, false, err.text);
    if (!f->ok) advise(f, "hplan calibrate");
    hp_arena_free(arena);
}

static hp_status read_history(history_figures *figures, hp_error *err) {
    char path[PATH_MAX], here[128];
    hp_arena *arena = hp_arena_new();
    hp_ledger_entry *e = NULL;
    int n = 0;
    const hp_status s = hp_ledger_read(arena, hp_ledger_path(path, sizeof path), &e, &n, err);
    *figures = history_sum(e, n, hp_host_processor(here, sizeof here), HP_NEW(arena, bool, n));
    hp_arena_free(arena);
    return s;
}

static void probe_history(finding *f, json_t *facts) {
    history_figures figures;
    hp_error err;
    char line[HISTORY_LINE];
    const bool read = read_history(&figures, &err) == HP_OK;
    const bool covers = !read || history_covers(&figures);
    say(f, read && figures.raw.n > 0 && covers, read ? history_line(&figures, line) : err.text);
    if (!covers) advise(f, figures.again);
    json_object_set_new(facts, "history", read ? history_json(&figures) : json_null());
}

/* Reports the speed that the newest run had; `simulate --check-speed` measures it, but takes seconds. */
static void probe_speed(finding *f, json_t *facts) {
    history_figures figures;
    char line[HISTORY_LINE];
    (void)facts; /* history.drift */
    read_history(&figures, NULL);
    say(f, fabs(figures.drift - 1) < 0.1, history_drift(&figures, line));
}

static const struct {
    const char *name;
    void (*probe)(finding *f, json_t *facts);
} probes[] = {
    {"hplan", probe_build},
    {"machine", probe_cores},
    {"memory", probe_memory},
    {"hplan-exec", probe_executor},
    {"mpirun", probe_mpirun},
    {"slurm", probe_slurm},
    {"cuda", probe_gpu},
    {"mps", probe_mps},
    {"gnuplot", probe_gnuplot},
    {"data", probe_data},
    {"calibration", probe_calibration},
    {"history", probe_history},
    {"speed", probe_speed},
};
enum { N_PROBE = (int)(sizeof probes / sizeof probes[0]) };

static const char first_steps[] = "hplan simulate --net cnn --image 28 --machine local";

static hp_status print_text(const finding *found, hp_error *err) {
    bool advised = false;
    for (int i = 0; i < N_PROBE; i++)
        printf(" %s   %-12s %s\n", found[i].ok ? "ok" : "--", probes[i].name, found[i].text);
    for (int i = 0; i < N_PROBE; i++) {
        if (!found[i].next[0]) continue;
        printf(" next: %s\n", found[i].next);
        advised = true;
    }
    if (!advised) printf(" next: %s\n", first_steps);
    return cli_finish_stdout(err);
}

static hp_status print_json(const finding *found, json_t *facts, hp_error *err) {
    json_t *checks = json_array(), *next = json_array();
    for (int i = 0; i < N_PROBE; i++) {
        json_array_append_new(checks, json_pack("{s:s, s:b, s:s}", "name", probes[i].name, "ok",
                                                (int)found[i].ok, "text", found[i].text));
        if (found[i].next[0]) json_array_append_new(next, json_string(found[i].next));
    }
    if (!json_array_size(next)) json_array_append_new(next, json_string(first_steps));
    json_object_set_new(facts, "schema", json_integer(1));
    json_object_set_new(facts, "checks", checks);
    json_object_set_new(facts, "next", next);
    return cli_print_json(json_incref(facts), err);
}

static error_t parse_option(int key, char *arg, struct argp_state *state) {
    bool *json = state->input;
    if (key == 'j')
        *json = true;
    else if (key == ARGP_KEY_ARG)
        argp_error(state, "'%s' is one word too many: doctor takes no arguments", arg);
    else
        return ARGP_ERR_UNKNOWN;
    return 0;
}

int cmd_doctor(int argc, char **argv) {
    static const struct argp_option options[] = {{"json", 'j', NULL, 0, "one JSON object", 0}, {0}};
    static const struct argp argp = {
        options, parse_option, NULL, "What this machine offers, and what to do next. Always exits 0.",
        NULL,    NULL,         NULL};
    bool json = false;
    cli_parse(&argp, 0, argc, argv, &json);

    finding found[N_PROBE] = {0};
    json_t *facts = json_object();
    for (int i = 0; i < N_PROBE; i++) probes[i].probe(&found[i], facts);
    hp_error err;
    const hp_status status = json ? print_json(found, facts, &err) : print_text(found, &err);
    json_decref(facts);
    return status == HP_OK ? HP_OK : cli_report(&err);
}
