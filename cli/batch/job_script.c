/* job_script.c - the directives that batch systems need, followed by the same shell program for all of
 * them. */
#include "cli/batch/job_script.h"

#include "base/text.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

typedef struct writer {
    hp_arena *arena;
    const job_script *j;
    const char *text;
} writer;

#define ADD(w, ...)                                                                                          \
    ((w)->text = hp_arena_printf((w)->arena, "%s%s", (w)->text, hp_arena_printf((w)->arena, __VA_ARGS__)))

/* --- what the batch system reads --- */

static bool even(const job_script *j) {
    return j->ranks == j->nodes * j->per_node;
}

static void slurm_head(writer *w) {
    const job_script *j = w->j;
    ADD(w, "#SBATCH --job-name=%s\n#SBATCH --nodes=%d\n#SBATCH --ntasks=%d\n", j->name, j->nodes, j->ranks);
    if (even(j)) ADD(w, "#SBATCH --ntasks-per-node=%d\n", j->per_node);
    ADD(w, "#SBATCH --cpus-per-task=%d\n", j->cores);
    if (j->gpus_per_node) ADD(w, "#SBATCH --gpus-per-node=%d\n", j->gpus_per_node);
    if (j->time) ADD(w, "#SBATCH --time=%s\n", j->time);
    if (j->partition) ADD(w, "#SBATCH --partition=%s\n", j->partition);
    if (j->account) ADD(w, "#SBATCH --account=%s\n", j->account);
    ADD(w,
        "#SBATCH --signal=B:USR1@%d\n#SBATCH --requeue\n#SBATCH --open-mode=append\n#SBATCH "
        "--output=%s-%%j.log\n",
        j->notice_s, j->name);
}

static void pbs_head(writer *w) {
    const job_script *j = w->j;
    ADD(w, "#PBS -N %s\n#PBS -l select=%d:ncpus=%d:mpiprocs=%d", j->name, j->nodes, j->per_node * j->cores,
        j->per_node);
    if (j->gpus_per_node) ADD(w, ":ngpus=%d", j->gpus_per_node);
    ADD(w, "\n");
    if (j->time) ADD(w, "#PBS -l walltime=%s\n", j->time);
    if (j->partition) ADD(w, "#PBS -q %s\n", j->partition);
    if (j->account) ADD(w, "#PBS -A %s\n", j->account);
    ADD(w, "#PBS -j oe\n#PBS -r y\n");
}

static void plain_head(writer *w) {
    ADD(w,
        "# %d rank%s on %d node%s. Several nodes: HPLAN_HOSTFILE=FILE, as mpirun reads it, with slots=%d "
        "each.\n",
        w->j->ranks, w->j->ranks == 1 ? "" : "s", w->j->nodes, w->j->nodes == 1 ? "" : "s", w->j->per_node);
}

/* Differences between the kinds: the submission directory, who is signalled how long before the end, and how
 * the job continues. */
typedef struct kind {
    const char *name;
    void (*head)(writer *w);
    const char *folder;  /* to go to */
    const char *attempt; /* number of this attempt */
    const char *launch;  /* words of `hplan run` */
    /* Requeues the job, inside an if; NULL: nobody requeues it. Slurm meanwhile ends the script's processes
     * by SIGTERM, possibly including the requeue command. The script therefore waits; if it ended, that could
     * be mistaken for the end of the next attempt. */
    const char *again;
    /* Was this job, which was told to end and has saved, preempted? Slurm requeues jobs that it kills, but a
     * job that saves and ends within the grace time (GraceTime) counts as failed, so the script must requeue
     * it. NULL: cannot be queried. */
    const char *makes_room;
    bool timed; /* nobody signals before the time limit, so the script does */
} kind;

static const kind kinds[] = {
    {"slurm", slurm_head, "cd \"${SLURM_SUBMIT_DIR:-.}\" || exit 1\n", "${SLURM_RESTART_COUNT:-0}",
     " --launcher srun",
     "(trap '' TERM && exec scontrol requeue \"$SLURM_JOB_ID\") && { [ \"$signalled\" = 1 ] || sleep 60 || "
     ":; }",
     "scontrol -o show job \"$SLURM_JOB_ID\" | grep -q 'JobState=RUNNING .*PreemptTime=[0-9]'", false},
    {"pbs", pbs_head, "cd \"${PBS_O_WORKDIR:-.}\" || exit 1\n", "${PBS_JOBID:-0}",
     " --launcher mpirun --hostfile \"$PBS_NODEFILE\"", "qsub \"$0\"", NULL, true},
    {"plain", plain_head, "", "$(date +%s)", "${HPLAN_HOSTFILE:+ --hostfile \"$HPLAN_HOSTFILE\"}", NULL, NULL,
     false},
};

static const kind *kind_of(const char *name) {
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kinds[i].name, name) == 0) return &kinds[i];
    return NULL;
}

/* --- the program --- */

static void run_it(writer *w, const kind *k) {
    const job_script *j = w->j;
    ADD(w, "trace=%s-\"%s\".db # of this attempt; earlier ones stay\n", hp_shell_quoted(w->arena, j->name),
        k->attempt);
    ADD(w, "saved=%s\nhplan run %s%s \\\n  --checkpoint \"$saved\" --resume --trace \"$trace\"",
        hp_shell_quoted(w->arena, j->checkpoint), hp_shell_quoted(w->arena, j->plan), k->launch);
    if (j->every) ADD(w, " --every %s", hp_shell_quoted(w->arena, j->every));
    if (j->threads > 1) ADD(w, " --threads %d", j->threads);
    for (int i = 0; i < j->n_option; i++) ADD(w, " %s", hp_shell_quoted(w->arena, j->option[i]));
    ADD(w, " &\nrun=$!\n[ -z \"$told\" ] || pass \"$told\"\n");
}

/* A signal that comes before the run has begun is passed on once it has. */
static void catch_signals(writer *w, const kind *k) {
    const char *noted = k->again ? "again=1 " : "";
    ADD(w, "%ssignalled=1 status=0 run='' told=''\n", k->again ? "again=0 " : "");
    ADD(w, "pass() { if [ -n \"$run\" ]; then kill -s \"$1\" \"$run\" 2>/dev/null; else told=$1; fi; }\n");
    ADD(w, "trap '%ssignalled=1; pass USR1' USR1 # the time is nearly over: save\n", noted);
    ADD(w, "trap 'signalled=1; pass TERM' TERM # save, and do not go on\n\n");
}

/* A signal interrupts `wait`, so it waits again; bash remembers the status of a process that ended
 * meanwhile. */
static void wait_for_it(writer *w) {
    ADD(w, "while [ \"$signalled\" = 1 ]; do\n  signalled=0\n  wait \"$run\"\n  status=$?\ndone\n\n");
}

/* 75: saved, but not finished. */
static void go_on(writer *w, const kind *k) {
    if (k->makes_room)
        ADD(w,
            "# told to end to make room for another job: this one goes on afterwards\n"
            "if [ \"$status\" = 75 ] && %s; then again=1; fi\n",
            k->makes_room);
    if (k->again)
        ADD(w,
            "if [ \"$status\" = 75 ] && [ \"$again\" = 1 ]; then\n  if %s; then exit 0; fi\n"
            "  echo \"the run is saved in $saved but the job could not be queued again: submit it once "
            "more\" >&2\nfi\n",
            k->again);
    ADD(w, "exit \"$status\"\n");
}

/* If nobody signals before the time limit, the script does. */
static void set_timer(writer *w, const kind *k, int64_t seconds) {
    if (k->timed && seconds > w->j->notice_s)
        ADD(w,
            "(sleep %lld && kill -s USR1 \"$$\") >/dev/null 2>&1 &\ntimer=$!\ntrap 'kill \"$timer\" "
            "2>/dev/null' EXIT\n",
            (long long)(seconds - w->j->notice_s));
}

hp_status job_script_write(hp_arena *arena, const job_script *j, const char **text, hp_error *err) {
    writer w = {arena, j, ""};
    const kind *k = kind_of(j->kind);
    int64_t seconds = 0;
    if (!k) return hp_fail(err, HP_EUSAGE, "--kind: '%.40s' is none of slurm, pbs, plain", j->kind);
    if (j->time) HP_TRY(job_seconds(j->time, &seconds, err));
    ADD(&w, "#!/bin/bash\n");
    k->head(&w);
    ADD(&w, "# Runs a plan with checkpoints%s.\nset -u\n%s",
        k->again ? ", and goes into the queue again until it is done" : "", k->folder);
    for (int i = 0; i < j->n_module; i++) ADD(&w, "module load %s\n", hp_shell_quoted(arena, j->module[i]));
    ADD(&w, "\n");
    catch_signals(&w, k);
    run_it(&w, k);
    set_timer(&w, k, seconds);
    wait_for_it(&w);
    go_on(&w, k);
    *text = w.text;
    return HP_OK;
}

/* --- time --- */

hp_status job_seconds(const char *time, int64_t *seconds, hp_error *err) {
    long days = 0, part[3] = {0};
    int n = 0, used = 0;
    const char *at = time, *dash = strchr(time, '-');
    bool good = time[strspn(time, "0123456789:-")] == '\0' && isdigit((unsigned char)time[0]);
    if (good && dash) {
        good = sscanf(time, "%6ld-%n", &days, &used) == 1 && time + used == dash + 1;
        at = dash + 1;
    }
    if (good) n = sscanf(at, "%6ld:%6ld:%6ld%n", &part[0], &part[1], &part[2], &used);
    if (good && n < 3) n = sscanf(at, "%6ld:%6ld%n", &part[0], &part[1], &used);
    if (good && n < 2) n = sscanf(at, "%6ld%n", &part[0], &used);
    good = good && n > 0 && at[used] == '\0';
    const int64_t hms = part[0] * INT64_C(3600) + part[1] * INT64_C(60) + part[2];
    const int64_t ms = part[0] * INT64_C(60) + part[1];
    *seconds = days * INT64_C(86400) + (n == 3 || dash ? hms : n == 2 ? ms : part[0] * INT64_C(60));
    if (good && *seconds > 0) return HP_OK;
    return hp_fail(err, HP_EUSAGE, "--time: '%.40s' is no time such as 4:00:00, 90 (minutes) or 2-12:00:00",
                   time);
}
