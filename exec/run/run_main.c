/* run_main.c - hplan-exec: executes one rank of a plan. Rank 0 prints JSON lines; a failed run prints one
 * message. */
#include "exec/data/weights/differences.h"
#include "exec/run/run_bench_comm.h"
#include "exec/run/check_speed.h"
#include "exec/run/run_gather.h"
#include "exec/run/infer_job.h"
#include "exec/run/job.h"
#include "exec/run/quantise.h"
#include "exec/run/run_train.h"
#include "exec/run/run_version.h"
#include "base/alloc.h"

#include <jansson.h>
#include <pthread.h>
#include <sys/prctl.h>

static volatile sig_atomic_t stop_signal, leave_signal; /* set by signals */

static void signal_set(bool saves, sigset_t *set) {
    sigemptyset(set);
    sigaddset(set, SIGTERM);
    sigaddset(set, SIGINT);
    if (saves) sigaddset(set, SIGUSR1);
}

/* With checkpoints SIGUSR1 and the first SIGTERM ask for one. */
static void *wait_for_signals(void *saves) {
    sigset_t set;
    int number;
    signal_set(saves != NULL, &set);
    while (sigwait(&set, &number) == 0)
        if (saves && (number == SIGUSR1 || (number == SIGTERM && leave_signal != SIGTERM)))
            leave_signal = number;
        else
            stop_signal = number;
    return NULL;
}

/* Takes signals in a thread, not in handlers: dnnl_sgemm (oneDNN 2.6.3) keeps values below its stack pointer,
 * where a handler's frame overwrites them (docs/measurements.md). Must run before any other thread starts, so
 * that all threads inherit the blocked signals. */
static void catch_signals(bool saves) {
    static char yes;
    sigset_t set;
    pthread_t thread;
    signal_set(saves, &set);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    if (pthread_create(&thread, NULL, wait_for_signals, saves ? &yes : NULL) == 0)
        pthread_detach(thread);
    else /* they end the process */
        pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);         /* a closed stdout is reported as an error with a message */
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* a rank must not outlive its launcher */
}

static int print_error(const hp_error *err) {
    fprintf(stderr, "hplan: %s\n", err->text);
    return (int)err->code;
}

static void warn_left_out(const hp_job *job) {
    const char *example = NULL;
    if (job->comm->rank > 0 || !job->train.data) return;
    const int64_t n = hp_dataset_left_out(job->train.data, &example);
    if (n > 0)
        fprintf(stderr,
                "note: --data %s: %lld file%s left out, as %s: images are .png, .jpg, .jpeg, .tif, .tiff\n",
                job->options->data.name, (long long)n, n == 1 ? " is" : "s are", example);
}

/* Weights of a wrapped model: under which names they were found. */
static void warn_prefix(const hp_job *job) {
    if (job->comm->rank > 0 || !job->options->init) return;
    hp_arena *a = hp_arena_new();
    const char *note = hp_weights_prefix_note(a, job->options->init, job->plan.graph);
    if (note) fprintf(stderr, "note: %s\n", note);
    hp_arena_free(a);
}

static hp_status run_job(hp_job *job, hp_error *err) {
    warn_prefix(job);
    warn_left_out(job);
    HP_TRY(job->options->quantise.file ? hp_job_quantise(job, err) : hp_job_train(job, err));
    if (job->options->quantise.file) hp_job_note_images(job);
    if (job->saved.leaves) return HP_OK;
    if (job->options->eval && job->plan.eval)
        HP_TRY(hp_job_eval(job, err)); /* inference's steps are its evaluation */
    if (job->options->save) HP_TRY(hp_job_save(job, err));
    HP_TRY(hp_job_output_finish(job, err));
    return hp_job_report(job, err);
}

/* An error during the run: the other ranks wait for this one, so it ends them all. Only the first failing
 * rank of a node prints its message; after a signal none does, as the sender knows. */
static int abort_run(hp_job *job, const hp_error *err) {
    const bool by_signal = stop_signal && (int)err->code == 128 + (int)stop_signal;
    if (!by_signal && (!job->timing.watch || hp_watch_speak(job->timing.watch))) print_error(err);
    hp_job_output_discard(job);
    job->comm->ops->abort(job->comm, (int)err->code);
    return (int)err->code;
}

/* What needs no plan. Closes the communicator, unless it fails. */
typedef hp_status measurement(const hp_exec_options *options, const hp_yard_waiter *w, hp_error *err);

static int measure(measurement *what, const hp_exec_options *options, hp_comm *comm) {
    hp_error err = {.code = HP_OK, .text = ""};
    const hp_yard_waiter w = {.comm = comm, .stop = &stop_signal, .limit_s = HP_COMM_SETUP_LIMIT_S};
    if (what(options, &w, &err) != HP_OK) {
        if (!stop_signal) print_error(&err);
        comm->ops->abort(comm, (int)err.code);
    }
    return (int)err.code;
}

/* Ends the job after a checkpoint that a signal asked for. Closing the checkpoint completes it. The message
 * precedes the end of any rank: when one exits with a code other than 0, its launcher kills the others. */
static int leave(hp_job *job, hp_error *err) {
    hp_checkpoint_close(job->saved.checkpoint);
    job->saved.checkpoint = NULL;
    hp_fail(err, HP_EREQUEUE, "step %lld is saved in %s: go on from there with --resume",
            (long long)job->steps, job->options->checkpoint.dir);
    if (job->comm->rank == 0) print_error(err);
    return HP_EREQUEUE;
}

/* Before this process has threads, and before MPI is there. */
static hp_status start_decoders(hp_job *job, hp_error *err) {
    const hp_exec_options *o = job->options;
    const hp_decoder_limits limits = hp_decoder_limits_default();
    if (o->speed.check || o->bench.series ||
        !hp_data_name_has_images(o->data.input ? o->data.input : o->data.name))
        return HP_OK;
    return hp_decoders_start(&limits, &job->decoders, err);
}

/* The answer is what is wrong, on stdout, nothing where nothing is: to have answered is no failure. */
static int tell_options(const hp_exec_options *o, hp_status parsed, hp_error *err) {
    if (parsed != HP_OK || hp_exec_options_check(o, err) != HP_OK) puts(err->text);
    return 0;
}

int main(int argc, char **argv) {
    hp_exec_options options;
    hp_error err = {.code = HP_OK, .text = ""};
    argp_program_version_hook = hp_exec_print_version;
    json_set_alloc_funcs(hp_alloc, free);
    const hp_status parsed = hp_exec_options_parse(argc, argv, &options, &err);
    if (options.check_options) return tell_options(&options, parsed, &err);
    if (parsed != HP_OK) return print_error(&err);
    hp_job job = {.options = &options, .signals.stop = &stop_signal, .signals.leave = &leave_signal};
    if (start_decoders(&job, &err) != HP_OK) return print_error(&err);
    catch_signals(options.checkpoint.dir != NULL);
    if (hp_comm_open(&job.comm, &err) != HP_OK) return print_error(&err);
    if (options.speed.check) return measure(hp_check_speed, &options, job.comm);
    if (options.bench.series) return measure(hp_run_bench_comm, &options, job.comm);
    int code = hp_job_open(&job, &err);
    if (code == HP_ESTALL || (code == HP_OK && run_job(&job, &err) != HP_OK)) return abort_run(&job, &err);
    if (code != HP_OK && job.speaker) print_error(&err);
    if (job.saved.leaves) code = leave(&job, &err);
    hp_job_close(&job);
    hp_decoders_stop(job.decoders);
    return code;
}
