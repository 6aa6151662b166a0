/* launch_command.c - builds the command lines of mpirun, srun and hplan-exec. */
#define _GNU_SOURCE
#include "cli/launch/launch_command.h"
#include "cli/launch/launch_capture.h"
#include "cli/launch/hostfile.h"
#include "cli/cli.h"
#include "machines/here.h"

#include <limits.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

static void word(launch_command *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void word(launch_command *c, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    HP_ASSERT(c->n < COMMAND_WORDS - 1);
    HP_ASSERT(vasprintf(&c->word[c->n++], fmt, ap) >= 0);
    va_end(ap);
}

static void words(launch_command *c, const char *const *list) {
    for (; *list; list++) word(c, "%s", *list);
}

/* The other nodes' cores are unknown; assumes as many as on this node. */
static bool is_oversubscribed(const cli_launch *l) {
    hp_here here;
    given_nodes given;
    return hp_here_read(&hp_here_system, &here, NULL) != HP_OK ||
           given_nodes_read(l->hostfile, &given, NULL) != HP_OK ||
           (int64_t)(l->hostfile && l->per_node > 0 && !l->in_order ? l->per_node
                                                                    : given_nodes_fullest(&given, l->ranks)) *
                   l->threads >
               here.cores;
}

static void add_mpirun(const cli_launch *l, launch_command *c) {
    static const char *const ALWAYS[] = {"--oversubscribe", /* ranks bind themselves: exec/run/run_bind.h */
                                         "--bind-to",
                                         "none",
                                         "--mca",
                                         "orte_base_help_aggregate",
                                         "0", /* no lines about suppressed messages */
                                         LAUNCH_KEEP_ALIVE,
                                         NULL};
    static const char *const ONE_NODE[] = {"--mca", "btl", "self,vader", NULL};
    /* its shared-memory transports; searching for networks first takes a fifth of a second */
    static const char *const SHARED_MEMORY[] = {"--mca", "pml", "ob1", NULL};
    static const char *const YIELD[] = {"--mca", "mpi_yield_when_idle", "1",
                                        NULL}; /* 18 times faster with 2 ranks per core */
    word(c, "mpirun");
    word(c, "-n");
    word(c, "%d", l->ranks);
    words(c, ALWAYS);
    if (is_oversubscribed(l)) words(c, YIELD);
    if (!l->hostfile) {
        words(c, ONE_NODE);
        if (!l->on_gpus) words(c, SHARED_MEMORY);
        return;
    }
    word(c, "--hostfile");
    word(c, "%s", l->hostfile);
    if (l->in_order || l->per_node > 0) word(c, "--map-by");
    if (l->in_order) {
        word(c, "seq");
    } else if (l->per_node > 0) {
        word(c, "ppr:%d:node", l->per_node);
    }
    word(c, "-x");
    word(c, "OMP_NUM_THREADS");
}

static void add_srun(const cli_launch *l, launch_command *c) {
    word(c, "srun");
    word(c, "--mpi=pmix");
    word(c, "--ntasks=%d", l->ranks);
    word(c, "--cpus-per-task=%d", l->threads);
    word(c, "--kill-on-bad-exit=1");
    if (l->in_order) word(c, "--distribution=arbitrary"); /* SLURM_HOSTFILE */
}

static void add_none(const cli_launch *l, launch_command *c) {
    (void)l, (void)c;
}

typedef struct launcher {
    const char *name, *package; /* package NULL: no program to look for */
    void (*add)(const cli_launch *l, launch_command *c);
} launcher;

static const launcher LAUNCHERS[] = {
    {"none", NULL, add_none}, {"srun", "slurm-client", add_srun}, {"mpirun", "openmpi-bin", add_mpirun}};
enum { N_LAUNCHER = 3 };

static const launcher *find_launcher(const char *name, hp_error *err) {
    for (int i = 0; i < N_LAUNCHER; i++)
        if (!strcmp(LAUNCHERS[i].name, name)) return &LAUNCHERS[i];
    hp_fail(err, HP_EUSAGE, "unknown launcher `%s`: mpirun, srun or none", name);
    return NULL;
}

hp_status launch_check_launcher(const char *name, hp_error *err) {
    return find_launcher(name, err) ? HP_OK : HP_EUSAGE;
}

static const launcher *choose_launcher(const cli_launch *l, hp_error *err) {
    const char *name = l->launcher;
    if (!name)
        name = l->ranks == 1 ? "none" : getenv("SLURM_JOB_ID") && cli_in_path("srun") ? "srun" : "mpirun";
    return find_launcher(name, err);
}

hp_status launch_command_make(const cli_launch *l, launch_command *c, hp_error *err) {
    *c = (launch_command){.n = 0};
    const launcher *how = choose_launcher(l, err);
    if (!how) return HP_EUSAGE;
    if (!how->package && l->ranks > 1)
        return hp_fail(err, HP_EPLAN,
                       "the plan needs %d ranks, --launcher none starts one: use --launcher mpirun",
                       l->ranks);
    if (how->package && !cli_in_path(how->name))
        return hp_fail(err, HP_EUNAVAIL, "the plan needs %d ranks and there is no %s: apt install %s",
                       l->ranks, how->name, how->package);
    how->add(l, c);
    char path[PATH_MAX];
    cli_executor_path(path, sizeof path);
    word(c, "%s", path);
    if (access(c->word[c->n - 1], X_OK) != 0) {
        hp_fail(err, HP_EUNAVAIL, "%s is missing: build it (it needs MPI and oneDNN, see `hplan doctor`)",
                c->word[c->n - 1]);
        launch_command_free(c);
        return HP_EUNAVAIL;
    }
    if (l->plan) {
        word(c, "%s", l->plan);
        word(c, "--rings=%s", l->scratch);
        word(c, "--threads=%d", l->threads);
    }
    for (int i = 0; i < l->n_option; i++) word(c, "%s", l->option[i]);
    return HP_OK;
}

void launch_command_free(launch_command *c) {
    for (int i = 0; i < c->n; i++) free(c->word[i]);
    c->n = 0;
}

int launch_variables(const cli_launch *l, char threads[16], launch_variable list[LAUNCH_VARIABLES]) {
    int n = 0;
    snprintf(threads, 16, "%d", l->threads);
    list[n++] = (launch_variable){"OMP_NUM_THREADS", threads, true};
    if (l->in_order) list[n++] = (launch_variable){"SLURM_HOSTFILE", l->hostfile, true};
    /* Over TCP, Open MPI issues a put for a large message, and the request for one waits behind the whole of
     * another. Two ranks that exchange data may thus take turns, at half the link's speed. Sent in fragments,
     * both directions move at once. */
    list[n++] = (launch_variable){"OMPI_MCA_btl_tcp_flags", "send,inplace,need-ack,need-csum", false};
    if (geteuid() != 0) return n; /* Open MPI refuses to run as root unless both variables are set */
    list[n++] = (launch_variable){"OMPI_ALLOW_RUN_AS_ROOT", "1", true};
    list[n++] = (launch_variable){"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", true};
    return n;
}

void launch_environment(const cli_launch *l) {
    char threads[16];
    launch_variable list[LAUNCH_VARIABLES];
    const int n = launch_variables(l, threads, list);
    for (int i = 0; i < n; i++) setenv(list[i].name, list[i].value, list[i].must);
}
