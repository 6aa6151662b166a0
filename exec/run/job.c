/* job.c - sets a rank up: each part fails with its own message, before any step runs. */
#include "exec/run/job.h"
#include "exec/run/run_parts.h"

#include "exec/data/broken/broken.h"
#include "exec/data/weights/constants.h"
#include "exec/data/weights/weights.h"
#include "exec/device/device_plugin.h"
#include "exec/run/run_bind.h"
#include "exec/run/run_calibrate.h"
#include "exec/run/infer_job.h"
#include "exec/run/run_room.h"
#include "exec/run/run_tuning.h"
#include "base/clock.h"
#include "base/new_file.h"
#include "machines/placement.h"

#include <string.h>

/* Limits on recorded spans and samples per rank: 24 bytes each, at most 24 MiB of spans and 12 MiB of
 * samples. At most about fifteen rounds of yardsticks follow a step. */
enum { MOST_SPANS = 1 << 20, MOST_SAMPLES = 1 << 19, SAMPLES_PER_STEP = 52 };

static hp_status read_plan(hp_job *j, hp_error *err) {
    hp_db db = {0};
    HP_TRY(hp_db_open(j->options->plan, &db, err));
    const hp_status s = hp_plan_read(j->memory, &db, &j->plan, err);
    hp_db_close(&db);
    HP_TRY(s);
    const int need = hp_program_ranks(j->plan.program);
    if (need != j->comm->size) /* within Slurm, ranks that do not find each other are one each */
        return hp_fail(err, HP_EPLAN, "the plan needs %d rank%s, started with %d: %s -n %d hplan-exec %s",
                       need, need == 1 ? "" : "s", j->comm->size,
                       getenv("SLURM_PROCID") ? "srun --mpi=pmix" : "mpirun", need, j->options->plan);
    j->role = j->comm->rank % j->plan.program->n_role;
    j->replica = j->comm->rank / j->plan.program->n_role;
    HP_TRY(hp_device_load(j->plan.device, j->plan.graph->deployed, &j->device.ops, err));
    if ((int)j->device.ops->dtype != j->plan.program->dtype)
        return hp_fail(err, HP_EUNAVAIL,
                       "device %s computes in %s, the plan is in %s: make the plan with --device %s",
                       j->device.ops->name, hp_dtype_names[j->device.ops->dtype],
                       hp_dtype_names[j->plan.program->dtype], j->plan.device->name);
    if (j->plan.program->mode == (int32_t)HP_MODE_TRAIN)
        HP_TRY(hp_rates_parse(&j->options->rates, j->plan.graph, &j->rates, err));
    /* before anything is trained */
    return j->options->save && j->comm->rank == 0 ? hp_new_file_check_plain(j->options->save, err) : HP_OK;
}

/* Checks that every rank read the same plan: compares its hash with rank 0's, 48 bits at a time. */
static hp_status check_same_plan(hp_job *j, hp_error *err) {
    double all[j->comm->size];
    const uint64_t mine = hp_hash64(j->plan.hash.hex, strlen(j->plan.hash.hex), 0);
    for (int part = 0; part < 64; part += 48) {
        HP_TRY(hp_comm_share(j->comm, (double)(mine >> part & 0xffffffffffff), all,
                             "the other ranks to read the plan", err));
        for (int r = 1; r < j->comm->size; r++)
            if (all[r] != all[0])
                return hp_fail(
                    err, HP_EPLAN,
                    "rank %d reads another plan from %s than rank 0: give every node the same file", r,
                    j->options->plan);
    }
    return HP_OK;
}

static bool has_backend(const hp_program *p, int32_t backend) {
    for (int r = 0; p && r < p->n_role; r++)
        for (int q = 0; q < p->role[r].n_queue; q++)
            if (p->role[r].queue[q].kind != HP_QUEUE_COMPUTE && p->role[r].queue[q].backend == backend)
                return true;
    return false;
}

/* Picks shared memory where ranks read each other's memory. */
static const hp_memory_ops *kind_of_memory(const hp_job *j) {
    const bool wanted = has_backend(j->plan.program, HP_BACKEND_SHM) ||
                        (j->options->eval && has_backend(j->plan.eval, HP_BACKEND_SHM));
    const bool shared = wanted && j->options->machine.ipc && j->comm->size > 1 && j->device.ops->memory->host;
    return shared ? &hp_memory_shared : j->device.ops->memory;
}

/* The device that the plan's placement gives to this rank, and how much of its memory. */
static hp_status open_memory(hp_job *j, hp_error *err) {
    const hp_program *p = j->plan.program, *eval = j->options->eval ? j->plan.eval : NULL;
    const hp_placement ranks = {.roles = p->n_role, .replicas = p->dp, .clients = p->clients};
    j->device.arena_bytes = p->role[j->role].arena_bytes;
    if (eval && eval->role[j->role].arena_bytes > j->device.arena_bytes)
        j->device.arena_bytes = eval->role[j->role].arena_bytes;
    if (j->options->eval && !eval && !j->plan.graph->deployed)
        return hp_fail(err, HP_EPLAN, "--eval needs a training plan: hplan simulate --mode train");
    return hp_memory_open(kind_of_memory(j), &ranks, &j->device.memory, err);
}

/* Other memory is taken as it is written to, or by a device that says when it is full. */
static hp_status check_room(hp_job *j, hp_error *err) {
    return j->device.memory.ops == &hp_memory_shared ? hp_room_check(j->comm, j->device.arena_bytes, err)
                                                     : HP_OK;
}

static hp_status allocate_arena(hp_job *j, hp_error *err) {
    hp_error why;
    const hp_status s = j->device.memory.ops->alloc(&j->device.memory, j->device.arena_bytes,
                                                    (void **)&j->device.arena, &why);
    if (s == HP_OK) return HP_OK;
    if (s == HP_EUNAVAIL) return hp_fail(err, s, "%s", why.text);
    return hp_fail(err, HP_EPLAN,
                   "rank %d cannot allocate the %lld bytes of its plan: %s; use a plan with more stages or "
                   "recompute",
                   j->comm->rank, (long long)j->device.arena_bytes, why.text);
}

static hp_status prepare_weights(hp_job *j, hp_error *err) {
    const hp_role *r = &j->plan.program->role[j->role];
    const hp_memory *m = &j->device.memory;
    const hp_buffer *weights = &r->buffer[HP_BUF_WEIGHTS], *state = &r->buffer[HP_BUF_STATE];
    hp_weights w = {.graph = j->plan.graph,
                    .role = r,
                    .dtype = j->plan.program->dtype,
                    .mode = j->plan.program->mode,
                    .replica = j->replica};
    if (j->plan.graph->deployed) return hp_job_constants(j, err);
    unsigned char *view = NULL;
    HP_TRY(hp_memory_view(m, j->device.arena + weights->offset, weights->bytes, (void **)&view, err));
    hp_status s = hp_memory_view(m, j->device.arena + state->offset, state->bytes, &w.state, err);
    w.weights = hp_keeps_parts(j->plan.program, HP_BUF_WEIGHTS)
                    ? malloc((size_t)(r->trained_elems * hp_dtype_bytes(w.dtype)) + 1)
                    : view;
    HP_ASSERT(w.weights || !weights->bytes);
    if (s == HP_OK && j->options->init)
        s = hp_weights_load(j->options->init, &w, err);
    else if (s == HP_OK)
        hp_weights_init(&w, j->plan.seed);
    if (hp_keeps_parts(j->plan.program, HP_BUF_WEIGHTS)) {
        if (s == HP_OK) hp_parts_split(j->plan.program, j->role, j->replica, w.weights, view);
        free(w.weights);
    }
    const hp_status put[] = {
        hp_memory_view_end(m, j->device.arena + weights->offset, weights->bytes, view, s == HP_OK, err),
        hp_memory_view_end(m, j->device.arena + state->offset, state->bytes, w.state, s == HP_OK, err)};
    return s != HP_OK ? s : put[0] != HP_OK ? put[0] : put[1];
}

static hp_status open_watch(hp_job *j, hp_error *err) {
    char path[4096];
    const char *dir = j->options->rings;
    if (dir) snprintf(path, sizeof path, "%s/board", dir);
    return hp_watch_open(dir ? path : NULL, j->comm->rank, j->comm->size, &j->timing.watch, err);
}

/* Number of samples of --deterministic: one per parameter of the rank if there is room and their places are
 * known (not with zero=3); else one for all weights and one for the running statistics. */
static int64_t count_hashes(hp_job *j, int64_t room) {
    const hp_role *r = &j->plan.program->role[j->role];
    const int64_t steps = j->steps + 1;
    int64_t n = 0;
    for (int p = 0; p < j->plan.graph->n_param; p++) n += r->place[p].here != 0;
    j->hashes.wanted = j->options->deterministic && j->plan.program->mode == (int)HP_MODE_TRAIN;
    j->hashes.by_param = !hp_keeps_parts(j->plan.program, HP_BUF_WEIGHTS) && n <= room / steps;
    return j->hashes.wanted ? steps * (j->hashes.by_param ? n : 2) : 0;
}

static hp_status open_trace(hp_job *j, hp_error *err) {
    char path[4096];
    const char *dir = j->options->rings;
    if (!dir) return HP_OK;
    snprintf(path, sizeof path, "%s/rank-%d.ring", dir, j->comm->rank);
    int64_t spans = (j->steps + 1) * j->plan.program->role[j->role].n_task;
    if (j->eval.loader) spans += (hp_loader_steps(j->eval.loader) + 1) * j->eval.role->n_task;
    const hp_role *role = &j->plan.program->role[j->role];
    int64_t samples = SAMPLES_PER_STEP * (j->steps + 8);
    for (int t = 0; t < role->n_task; t++) samples += role->task[t].queue != 0; /* what it sent, at the end */
    samples += count_hashes(j, MOST_SAMPLES - samples);
    return hp_ring_create(path, j->comm->rank, j->role, spans < MOST_SPANS ? spans : MOST_SPANS,
                          samples < MOST_SAMPLES ? samples : MOST_SAMPLES, &j->timing.ring, err);
}

/* Chooses how device memory is sent: through NCCL if the plan says so; otherwise directly where devices can
 * access each other; otherwise by MPI where it reads device memory; otherwise through host memory.
 * Collectives by steps have their data in host memory, so direct messages of host memory carry them as
 * well. */
static hp_status open_messages(hp_job *j, hp_error *err) {
    const hp_plugin *plugin;
    hp_comm **messages = j->device.ops->memory->host ? hp_comm_own_inner(j->comm) : &j->comm;
    j->comm->reads_device = j->comm->reads_device && j->options->machine.gpu_mpi;
    if (!j->device.ops->memory->host) j->comm = hp_comm_staged(j->comm, &j->device.memory);
    if (j->options->machine.ipc)
        HP_TRY(hp_comm_peer(*messages, &j->device.memory, j->device.arena, j->device.arena_bytes, messages,
                            err));
    if (j->comm->size == 1 || !has_backend(j->plan.program, HP_BACKEND_NCCL)) return HP_OK;
    HP_TRY(hp_plugin_load(j->plan.device, &plugin, err));
    return plugin->nccl(j->comm, &j->device.memory, &j->comm, err);
}

static hp_status prepare_memory(hp_job *j, hp_error *err) {
    HP_TRY(allocate_arena(j, err));
    return prepare_weights(j, err);
}

/* Steps are numbered in 32 bits. */
static hp_status count_epochs(hp_job *j, hp_error *err) {
    const int64_t each = hp_loader_steps(j->train.loader), most = each > 0 ? INT32_MAX / each : INT32_MAX;
    if (j->options->epochs > most)
        return hp_fail(err, HP_EUSAGE, "--epochs %lld of %lld step%s each are too many: at most %lld",
                       (long long)j->options->epochs, (long long)each, each == 1 ? "" : "s", (long long)most);
    j->steps = j->options->epochs * each;
    return HP_OK;
}

static hp_status open_passes(hp_job *j, hp_error *err) {
    const bool deployed = j->plan.graph->deployed;
    HP_TRY(hp_job_pass_open(j, &j->train, j->plan.program, deployed ? HP_SPLIT_TEST : HP_SPLIT_TRAIN, err));
    if (deployed) hp_constants_release(j->deployed.constants);
    if (j->plan.eval && j->options->eval)
        HP_TRY(hp_job_pass_open(j, &j->eval, j->plan.eval, HP_SPLIT_TEST, err));
    static const int64_t DEFAULT_STEPS = 10; /* enough for a median without the first step */
    j->steps = j->options->steps ? j->options->steps : DEFAULT_STEPS;
    const bool all = deployed && j->train.loader &&
                     (j->options->data.input || strcmp(j->options->data.name, "synthetic") != 0);
    if (all && !j->options->steps) j->steps = hp_loader_steps(j->train.loader);
    if (j->options->epochs && j->train.loader) HP_TRY(count_epochs(j, err));
    return open_trace(j, err);
}

/* Makes the tuned kernels the same on all ranks before the first step. If a rank cannot import a choice the
 * others do not know, so ranks agree on the status after each pass. */
static hp_status share_tuning(hp_job *j, hp_error *err) {
    return hp_tuning_share(j->comm, j->device.ops->tuning, j->train.device, err);
}

static hp_status share_eval_tuning(hp_job *j, hp_error *err) {
    return j->eval.device ? hp_tuning_share(j->comm, j->device.ops->tuning, j->eval.device, err) : HP_OK;
}

/* Before memory is touched, which puts it near the core that does; a GPU has its own. */
static hp_status bind_cores(hp_job *j, hp_error *err) {
    const bool bind = j->options->machine.bind && j->device.ops->memory->host;
    return hp_bind_rank(j->comm, (int)j->options->threads, bind, &j->cores.bound, err);
}

/* Applies --quota, after the cores were counted, because a quota reduces that count. */
static hp_status slow_down(hp_job *j, hp_error *err) {
    double processors;
    if (!j->options->machine.quota) return HP_OK;
    HP_TRY(hp_quota_parse(j->options->machine.quota, j->comm->rank, j->comm->size, &processors, err));
    return hp_quota_join(&j->cores.quota, "", processors, err);
}

/* Samples the yardsticks, only for a trace; either all ranks have one or none. Under a quota the yardsticks
 * would mistake it for a slow machine. */
static void open_sampler(hp_job *j) {
    if (!j->timing.ring || !j->options->machine.yardsticks || j->options->machine.quota) return;
    const hp_sampler_config c = {.comm = j->comm,
                                 .clock = &j->timing.clock,
                                 .ring = j->timing.ring,
                                 .watch = j->timing.watch,
                                 .stop = j->signals.stop,
                                 .start_s = j->timing.start_s};
    j->timing.sampler = hp_sampler_open(&c);
}

static hp_status leave_out(hp_job *j, const hp_job_pass *pass, int64_t *n, hp_error *err) {
    const hp_broken_options o = {.comm = j->comm,
                                 .percent = j->options->data.broken_percent,
                                 .stop = j->signals.stop,
                                 .leave = j->signals.leave};
    if (o.percent < 0 || !pass->loader) return HP_OK;
    return hp_broken_leave_out(&o, pass->loader, n, &j->speaker, err);
}

static hp_status leave_out_broken(hp_job *j, hp_error *err) {
    HP_TRY(leave_out(j, &j->train, &j->left_out[0], err));
    return leave_out(j, &j->eval, &j->left_out[1], err);
}

static hp_status send_constants(hp_job *j, hp_error *err) {
    return j->deployed.constants ? hp_qparams_broadcast(j->deployed.constants, j->comm, err) : HP_OK;
}

static hp_status join(hp_job *j, hp_error *err) {
    return j->comm->ops->join(j->comm, j->plan.program, err);
}

static hp_status open_clock(hp_job *j, hp_error *err) {
    HP_TRY(hp_clock_open(j->comm, &j->timing.clock, err));
    open_sampler(j);
    j->timing.patience = (hp_patience){.fixed_s = j->options->deadline_s,
                                       .predicted_s = j->plan.step_s,
                                       .predicted_here = hp_device_of_machine(j->plan.machine.name) != NULL};
    return HP_OK;
}

static hp_status start_train(hp_job *j, hp_error *err) {
    return hp_job_pass_start(j, &j->train, err);
}

static hp_status load_checkpoint(hp_job *j, hp_error *err) {
    return j->saved.checkpoint ? hp_checkpoint_load(j->saved.checkpoint, &j->speaker, err) : HP_OK;
}

static hp_status start_eval(hp_job *j, hp_error *err) {
    return j->plan.eval && j->options->eval ? hp_job_pass_start(j, &j->eval, err) : HP_OK;
}

/* How ranks learn that a part failed on one of them: after what each does alone they agree on how it went;
 * what is collective sees to that itself, or fails alike on all. */
typedef enum part_kind { ALONE, COLLECTIVE } part_kind;

static const struct part { /* in this order */
    hp_status (*set_up)(hp_job *j, hp_error *err);
    part_kind kind;
} PARTS[] = {
    {read_plan, ALONE},
    {check_same_plan, ALONE},
    {open_watch, ALONE},
    {bind_cores, COLLECTIVE},
    {slow_down, ALONE},
    {open_memory, ALONE},
    {check_room, ALONE},
    {prepare_memory, ALONE},
    {open_messages, ALONE},
    {send_constants, COLLECTIVE},
    {open_passes, ALONE},
    {leave_out_broken, COLLECTIVE},
    {share_tuning, ALONE},
    {share_eval_tuning, ALONE},
    {join, ALONE},
    {hp_job_checkpoint_open, COLLECTIVE},
    {open_clock, COLLECTIVE},
    {hp_job_output_open, COLLECTIVE},
    {start_train, COLLECTIVE},
    {load_checkpoint, COLLECTIVE},
    {start_eval, COLLECTIVE},
};

hp_status hp_job_agree(hp_job *j, hp_status mine, hp_error *err) {
    return hp_comm_agree(j->comm, mine, &j->speaker, err);
}

hp_status hp_job_open(hp_job *j, hp_error *err) {
    hp_status status = HP_OK;
    j->speaker = true;
    j->timing.start_s = hp_now_s();
    j->memory = hp_arena_new();
    for (size_t i = 0; i < sizeof PARTS / sizeof *PARTS && status == HP_OK; i++) {
        status = PARTS[i].set_up(j, err);
        if (PARTS[i].kind == ALONE) status = hp_job_agree(j, status, err);
    }
    return status;
}

void hp_job_close(hp_job *j) {
    hp_checkpoint_close(j->saved.checkpoint);
    hp_job_output_discard(j);
    hp_job_pass_close(j, &j->eval);
    hp_job_pass_close(j, &j->train);
    hp_sampler_close(j->timing.sampler);
    if (j->timing.ring) hp_ring_close(j->timing.ring);
    hp_watch_close(j->timing.watch);
    hp_constants_close(j->deployed.constants);
    free(j->sink.row);
    j->comm->ops->close(j->comm); /* before the arena, which other processes may have mapped */
    if (j->device.arena)
        j->device.memory.ops->free(&j->device.memory, j->device.arena, j->device.arena_bytes);
    hp_memory_close(&j->device.memory);
    hp_quota_leave(&j->cores.quota);
    hp_arena_free(j->memory);
    j->timing.ring = NULL, j->timing.watch = NULL, j->timing.sampler = NULL, j->device.arena = NULL,
    j->memory = NULL, j->comm = NULL, j->saved.checkpoint = NULL;
}
