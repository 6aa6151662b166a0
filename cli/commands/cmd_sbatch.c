/* cmd_sbatch.c - prints a job script for a plan: for Slurm, PBS, or any shell. */
#include "cli/batch/job_script.h"
#include "cli/bench/bench_list.h"
#include "cli/cli.h"
#include "cli/launch/launch_capture.h"
#include "cli/launch/launch_command.h"
#include "cli/options/run_options.h"
#include "cli/show/frame.h"
#include "cli/show/next.h"
#include "base/units.h"
#include "machines/machine.h"
#include "plan/store/store.h"
#include "traces/outfile.h"

#include <limits.h>
#include <string.h>

typedef struct options {
    const char *time, *kind, *module, *checkpoint, *every, *partition, *account, *notice, *name, *threads,
        *output;
} options;

static const frame_option OPTIONS[] = {
    {"time", 't', "TIME", offsetof(options, time), 0,
     "limit of each attempt: 4:00:00, 90 (minutes), 2-12:00:00"},
    {"kind", 0, "slurm|pbs|plain", offsetof(options, kind), 0, "of which batch system (slurm)"},
    {"partition", 'p', "NAME", offsetof(options, partition), 0, "partition, or queue of PBS"},
    {"account", 'A', "NAME", offsetof(options, account), 0, "whom it is charged to"},
    {"module", 'm', "LIST", offsetof(options, module), 0, "environment modules to load"},
    {"name", 'J', "NAME", offsetof(options, name), 0, "of the job (hplan-NETWORK)"},
    {"checkpoint", 0, "DIR", offsetof(options, checkpoint), 0,
     "folder that all nodes share (NAME.checkpoints)"},
    {"every", 0, "N|TIME", offsetof(options, every), 0, "from one checkpoint to the next (as run has it)"},
    {"notice", 0, "S", offsetof(options, notice), 0, "seconds before the limit in which to save (120)"},
    {"threads", 0, "T", offsetof(options, threads), 0, "threads per rank (1)"},
    {"output", 'o', "FILE", offsetof(options, output), 0, "write there instead of to stdout"},
    {0}};

/* Names stand in directives, which nobody quotes. */
static hp_status plain_word(const char *what, const char *word, hp_error *err) {
    const bool good =
        !word ||
        (*word &&
         word[strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-+/,")] == '\0');
    return good
               ? HP_OK
               : hp_fail(err, HP_EUSAGE,
                         "%s: '%.40s' has other characters than letters, digits and . _ - + / ,", what, word);
}

static hp_status check_words(const options *o, hp_error *err) {
    HP_TRY(plain_word("--partition", o->partition, err));
    HP_TRY(plain_word("--account", o->account, err));
    return plain_word("--name", o->name, err);
}

static const char *name_of(hp_arena *arena, const hp_plan *plan, const options *o) {
    char *name = hp_arena_printf(arena, "hplan-%.60s", plan->net);
    for (char *s = name; *s; s++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-", *s)) *s = '-';
    return o->name ? o->name : name;
}

/* Sets the nodes, and the ranks on each. */
static void lay_out(const hp_plan *plan, job_script *j) {
    const hp_machine *m = &plan->machine;
    const int clients = plan->strategy.clients > 0 ? plan->strategy.clients : 1;
    const bool gpus = hp_device_on_gpu(plan->device);
    j->ranks = hp_program_ranks(plan->program);
    const int devices = (j->ranks + clients - 1) / clients,
              here = devices < m->devices_per_node ? devices : m->devices_per_node;
    j->nodes = (devices + m->devices_per_node - 1) / m->devices_per_node;
    j->per_node = here * clients;
    j->gpus_per_node = gpus ? here : 0;
    /* beside a GPU the others read images; a processor's rank computes with what it is given */
    const int share = gpus && here > 0 ? m->cores_per_node / (here * clients) : 0;
    j->cores = share > j->threads ? share : j->threads;
    if (gpus && j->cores == 1)
        fprintf(stderr, "hplan: note: one core for each GPU reads all of its images: --threads T asks for "
                        "more, or cores=N of the "
                        "machine (hplan help machine)\n");
}

static hp_status parse(hp_arena *arena, const options *o, const frame *f, job_script *j, hp_error *err) {
    int64_t notice = 120, threads = 1;
    bench_list modules = {0};
    HP_TRY(check_words(o, err));
    if (o->notice) HP_TRY(hp_parse_int(o->notice, "--notice", 1, 86400, &notice, err));
    if (o->threads) HP_TRY(hp_parse_int(o->threads, "--threads", 1, 4096, &threads, err));
    if (o->module) HP_TRY(bench_list_parse(arena, o->module, "--module", false, &modules, err));
    for (int i = 0; i < modules.n && i < JOB_WORDS; i++) j->module[j->n_module++] = modules.word[i];
    for (int i = 1; i < f->n_word && j->n_option < JOB_WORDS; i++) j->option[j->n_option++] = f->word[i];
    j->kind = o->kind ? o->kind : "slurm";
    j->time = o->time;
    j->partition = o->partition;
    j->account = o->account;
    j->every = o->every;
    j->notice_s = (int)notice;
    j->threads = (int)threads;
    j->plan = f->word[0];
    return HP_OK;
}

static hp_status check_time(const job_script *j, hp_error *err) {
    int64_t seconds;
    if (!j->time) return HP_OK;
    HP_TRY(job_seconds(j->time, &seconds, err));
    if (seconds > j->notice_s) return HP_OK;
    return hp_fail(err, HP_EUSAGE, "--time: %lld s are over before the %d s of --notice", (long long)seconds,
                   j->notice_s);
}

/* Refuses now what `hplan run` would refuse hours later in the job: unknown options (argp ends the process)
 * and numbers that are not numbers. */
static hp_status parse_options(const frame *f, const job_script *j, run_options *o, hp_error *err) {
    static char name[] = "hplan run";
    char **argv = HP_NEW(f->arena, char *, j->n_option + 3);
    argv[0] = name;
    argv[1] = hp_arena_strdup(f->arena, j->plan);
    for (int i = 0; i < j->n_option; i++) argv[2 + i] = hp_arena_strdup(f->arena, j->option[i]);
    return run_options_parse(f->arena, j->n_option + 2, argv, o, err);
}

/* Lets hplan-exec check its own options. Where it cannot run, as on a front end without MPI, the job will
 * check them. */
static hp_status ask_executor(hp_arena *arena, const run_options *o, const job_script *j, hp_error *err) {
    enum { ASK_LIMIT_S = 60 };
    char path[PATH_MAX], wrong[1024];
    const char *argv[RUN_PASS + 6];
    int n = 0;
    cli_executor_path(path, sizeof path);
    argv[n++] = path;
    argv[n++] = "--check-options";
    argv[n++] = hp_arena_printf(arena, "--checkpoint=%s", j->checkpoint);
    if (j->every) argv[n++] = hp_arena_printf(arena, "--every=%s", j->every);
    for (int i = 0; i < o->n_pass; i++) argv[n++] = o->pass[i];
    argv[n++] = o->path;
    argv[n] = NULL;
    if (!cli_capture(argv, ASK_LIMIT_S, wrong, sizeof wrong) || !*wrong) return HP_OK;
    return hp_fail(err, HP_EUSAGE, "%.*s", (int)strcspn(wrong, "\n"), wrong);
}

static hp_status check_options(hp_arena *arena, const hp_plan *plan, const run_options *o,
                               const job_script *j, hp_error *err) {
    hp_plan there = *plan;
    if (o->launcher) HP_TRY(launch_check_launcher(o->launcher, err));
    if (o->device) HP_TRY(hp_plan_on_device(&there, o->device, err));
    return ask_executor(arena, o, j, err);
}

static hp_status print(const char *text, hp_error *err) {
    fputs(text, stdout);
    return cli_finish_stdout(err);
}

static hp_status sbatch(frame *f, hp_error *err) {
    const options *o = f->options;
    job_script j = {0};
    hp_plan plan;
    run_options run;
    const char *text;
    HP_TRY(parse(f->arena, o, f, &j, err));
    HP_TRY(check_time(&j, err));
    HP_TRY(parse_options(f, &j, &run, err));
    HP_TRY(hp_plan_read(f->arena, &f->db, &plan, err));
    if (plan.mode != HP_MODE_TRAIN)
        return hp_fail(err, HP_EUSAGE, "%s infers: it has no state to go on from; a job of one line runs it",
                       f->word[0]);
    j.name = name_of(f->arena, &plan, o);
    j.checkpoint = o->checkpoint ? o->checkpoint : hp_arena_printf(f->arena, "%s.checkpoints", j.name);
    HP_TRY(check_options(f->arena, &plan, &run, &j, err));
    lay_out(&plan, &j);
    HP_TRY(job_script_write(f->arena, &j, &text, err));
    if (!o->output) return print(text, err);
    hp_outfile out;
    HP_TRY(hp_outfile_open(o->output, &out, err));
    fputs(text, out.f);
    return hp_outfile_commit(&out, err);
}

int cmd_sbatch(int argc, char **argv) {
    static const frame_command command = {
        .option = OPTIONS,
        .usage = "PLAN.db [-- OPTIONS of hplan run]",
        .doc = "Prints a job script for a plan: nodes, ranks and GPUs as the plan has them, a checkpoint "
               "before the time is over, "
               "and into the queue again until it is done.\vFor example: hplan sbatch plan.db -t 4:00:00 -- "
               "--data tiles/ --epochs 90 "
               ">job.sh; sbatch job.sh",
        .min_word = 1,
        .max_word = FRAME_WORDS,
        .too_few = "which plan? For example: hplan sbatch plan.db -t 4:00:00",
        .too_many = "'%s' is one word too many",
        .opens = true,
        .run = sbatch};
    options o = {0};
    return frame_run(&command, &o, argc, argv);
}
