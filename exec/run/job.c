/* job.c - sets a rank up: each part fails with its own message, before any step runs. */
#include "exec/run/job.h"

#include "exec/run/calibrate.h"
#include "exec/data/weights/constants.h"
#include "exec/data/output/output.h"
#include "exec/device/plugin.h"
#include "exec/run/tuning.h"
#include "plan/machine/placement.h"

#include <string.h>
#include <unistd.h>

/* Limits on recorded spans and samples per rank: 24 bytes each, at most 24 MiB of spans. */
enum { MOST_SPANS = 1 << 20, MOST_SAMPLES = 1 << 18 };

static hp_status read_plan(hp_job *j, hp_error *err) {
    hp_db db = {0};
    HP_TRY(hp_db_open(j->options->plan, &db, err));
    const hp_status s = hp_plan_read(j->memory, &db, &j->plan, err);
    hp_db_close(&db);
    HP_TRY(s);
    const int need = hp_program_ranks(j->plan.program);
    if (need != j->comm->size)
        return hp_fail(err, HP_EPLAN, "the plan needs %d rank%s, started with %d: mpirun -n %d hplan-exec %s",
                       need, need == 1 ? "" : "s", j->comm->size, need, j->options->plan);
    j->role = j->comm->rank % j->plan.program->n_role;
    j->replica = j->comm->rank / j->plan.program->n_role;
    HP_TRY(hp_device_load(j->plan.device, j->plan.graph->deployed, &j->ops, err));
    if ((int)j->ops->dtype != j->plan.program->dtype)
        return hp_fail(err, HP_EUNAVAIL,
                       "device %s computes in %s, the plan is in %s: make the plan with --device %s",
                       j->ops->name, hp_dtype_names[j->ops->dtype], hp_dtype_names[j->plan.program->dtype],
                       j->plan.device->name);
    return HP_OK;
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

/* The device that the plan's placement gives to this rank. */
static hp_status open_memory(hp_job *j, hp_error *err) {
    const hp_program *p = j->plan.program;
    const hp_placement ranks = {.roles = p->n_role, .replicas = p->dp, .clients = p->clients};
    return hp_memory_open(j->ops->memory, &ranks, &j->there, err);
}

static hp_status allocate_arena(hp_job *j, hp_error *err) {
    const hp_program *eval = j->options->eval ? j->plan.eval : NULL;
    hp_error why;
    j->arena_bytes = j->plan.program->role[j->role].arena_bytes;
    if (eval && eval->role[j->role].arena_bytes > j->arena_bytes)
        j->arena_bytes = eval->role[j->role].arena_bytes;
    if (j->options->eval && !eval && !j->plan.graph->deployed)
        return hp_fail(err, HP_EPLAN, "--eval needs a training plan: hplan simulate --mode train");
    HP_TRY(open_memory(j, err));
    const hp_status s = j->there.ops->alloc(&j->there, j->arena_bytes, (void **)&j->arena, &why);
    if (s == HP_OK) return HP_OK;
    if (s == HP_EUNAVAIL) return hp_fail(err, s, "%s", why.text);
    return hp_fail(err, HP_EPLAN,
                   "rank %d cannot have the %lld bytes of its plan: %s; take a plan with more stages or "
                   "recompute",
                   j->comm->rank, (long long)j->arena_bytes, why.text);
}

static hp_status prepare_weights(hp_job *j, hp_error *err) {
    const hp_role *r = &j->plan.program->role[j->role];
    const hp_memory *m = &j->there;
    const hp_buffer *weights = &r->buffer[HP_BUF_WEIGHTS], *state = &r->buffer[HP_BUF_STATE];
    hp_weights w = {.graph = j->plan.graph,
                    .role = r,
                    .dtype = j->plan.program->dtype,
                    .mode = j->plan.program->mode,
                    .replica = j->replica};
    if (j->plan.graph->deployed) return hp_job_constants(j, err);
    HP_TRY(hp_memory_view(m, j->arena + weights->offset, weights->bytes, &w.weights, err));
    hp_status s = hp_memory_view(m, j->arena + state->offset, state->bytes, &w.state, err);
    if (s == HP_OK && j->options->init)
        s = hp_weights_load(j->options->init, &w, err);
    else if (s == HP_OK)
        hp_weights_init(&w, j->plan.seed);
    const hp_status put[] = {
        hp_memory_view_end(m, j->arena + weights->offset, weights->bytes, w.weights, s == HP_OK, err),
        hp_memory_view_end(m, j->arena + state->offset, state->bytes, w.state, s == HP_OK, err)};
    return s != HP_OK ? s : put[0] != HP_OK ? put[0] : put[1];
}

static hp_status open_trace(hp_job *j, hp_error *err) {
    char path[4096];
    const char *dir = j->options->rings;
    if (dir) snprintf(path, sizeof path, "%s/board", dir);
    HP_TRY(hp_watch_open(dir ? path : NULL, j->comm->rank, j->comm->size, &j->watch, err));
    if (!dir) return HP_OK;
    snprintf(path, sizeof path, "%s/rank-%d.ring", dir, j->comm->rank);
    int64_t spans = (j->steps + 1) * j->plan.program->role[j->role].n_task;
    if (j->eval.loader) spans += (hp_loader_steps(j->eval.loader) + 1) * j->eval.role->n_task;
    const int64_t samples = 4 * (j->steps + 8);
    return hp_ring_create(path, j->comm->rank, j->role, spans < MOST_SPANS ? spans : MOST_SPANS,
                          samples < MOST_SAMPLES ? samples : MOST_SAMPLES, &j->ring, err);
}

static hp_status load_samples(void *pass, int32_t iter, int32_t micro, void *x, hp_dtype x_dtype,
                              const hp_box *x_box, void *labels, const hp_box *label_box, hp_error *err) {
    const hp_job_pass *p = pass;
    int64_t step = iter >= 0 ? iter : -1 - iter;
    if (p->repeats) step %= hp_loader_steps(p->loader);
    return hp_loader_read_typed(p->loader, step, micro, x, x_dtype, x_box, labels, label_box, err);
}

static bool has_load_task(const hp_role *r) {
    for (int t = 0; t < r->n_task; t++)
        if (r->task[t].op == HP_TASK_LOAD) return true;
    return false;
}

/* Every rank opens the data, also one without a load task, as the number of steps must be the same on all.
 * Programs that only exchange messages need none. */
static hp_status open_split(hp_job *j, hp_job_pass *pass, hp_split split, hp_error *err) {
    bool any = false;
    for (int r = 0; r < pass->program->n_role; r++) any |= has_load_task(&pass->program->role[r]);
    if (!any) return HP_OK;
    hp_data_options d = j->options->pixels;
    d.name = j->options->input ? j->options->input : j->options->data;
    d.split = split;
    d.image_h = j->plan.image_h, d.image_w = j->plan.image_w, d.image_c = j->plan.graph->image_c;
    d.label_h = hp_job_logits(j)->h, d.label_w = hp_job_logits(j)->w;
    d.classes = j->plan.classes;
    d.seed = j->plan.seed;
    hp_status opened = hp_dataset_open(&d, &pass->data, err);
    /* maps of a deployed network are not scored: any labels are accepted */
    if (opened != HP_OK && j->plan.graph->deployed) {
        d.label_h = d.label_w = 1, d.classes = 1 << 20;
        hp_error other = {0};
        if (hp_dataset_open(&d, &pass->data, &other) == HP_OK) opened = HP_OK;
    }
    HP_TRY(opened);
    const hp_loader_options l = {.data = pass->data,
                                 .program = pass->program,
                                 .replica = j->replica,
                                 .seed = j->plan.seed,
                                 .shuffle = j->options->shuffle && split == HP_SPLIT_TRAIN,
                                 .eval = split == HP_SPLIT_TEST || j->plan.graph->deployed};
    return hp_loader_open(&l, &pass->loader, err);
}

/* Calibration uses training images where there are any. */
static hp_status open_data(hp_job *j, hp_job_pass *pass, hp_split split, hp_error *err) {
    hp_error ignored = {0};
    if (j->options->quantise && open_split(j, pass, HP_SPLIT_TRAIN, &ignored) == HP_OK) return HP_OK;
    return open_split(j, pass, split, err);
}

static hp_status open_device(hp_job *j, hp_job_pass *pass, hp_error *err) {
    const hp_device_config d = {.program = pass->program,
                                .graph = j->plan.graph,
                                .role = pass->role,
                                .memory = &j->there,
                                .arena = j->arena,
                                .threads = (int)j->options->threads,
                                .constants = j->constants};
    return j->ops->open(&d, &pass->device, err);
}

hp_status hp_job_pass_open(hp_job *j, hp_job_pass *pass, const hp_program *program, hp_split split,
                           hp_error *err) {
    pass->program = program;
    pass->role = &program->role[j->role];
    pass->repeats = j->plan.graph->deployed;
    HP_TRY(open_data(j, pass, split, err));
    return open_device(j, pass, err);
}

/* The interpreter is opened last: it refers to all other parts. */
static hp_status open_interp(hp_job *j, hp_job_pass *pass, hp_error *err) {
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    const hp_interp_config c = {.program = pass->program,
                                .graph = j->plan.graph,
                                .role = pass->role,
                                .replica = j->replica,
                                .memory = &j->there,
                                .arena = j->arena,
                                .ops = j->ops,
                                .device = pass->device,
                                .load = load_samples,
                                .loader = pass,
                                .observe = j->options->quantise ? hp_job_observe : NULL,
                                .observer = j,
                                .store = j->output || j->votes ? hp_job_output_write : NULL,
                                .sink = j,
                                .comm = j->comm,
                                .clock = &j->clock,
                                .ring = j->ring,
                                .watch = j->watch,
                                .stop = j->stop,
                                .yield = j->comm->size * j->options->threads > cores,
                                .n_steps = pass == &j->eval ? hp_loader_steps(pass->loader) : j->steps};
    return hp_interp_new(&c, &pass->interp, err);
}

hp_status hp_job_pass_reopen(hp_job *j, hp_job_pass *pass, hp_error *err) {
    hp_interp_free(pass->interp);
    j->ops->close(pass->device);
    pass->interp = NULL, pass->device = NULL;
    HP_TRY(open_device(j, pass, err));
    HP_TRY(hp_tuning_share(j->comm, j->ops->tuning, pass->device, err));
    return open_interp(j, pass, err);
}

void hp_job_pass_close(const hp_job *j, hp_job_pass *pass) {
    hp_interp_free(pass->interp);
    if (pass->device) j->ops->close(pass->device);
    hp_loader_close(pass->loader);
    hp_dataset_close(pass->data);
    *pass = (hp_job_pass){0};
}

/* Chooses how device memory is sent: through NCCL if the plan says so, otherwise directly from device to
 * device where they can access each other, otherwise through host memory. */
static bool has_backend(const hp_program *p, int32_t backend) {
    for (int r = 0; r < p->n_role; r++)
        for (int q = 0; q < p->role[r].n_queue; q++)
            if (p->role[r].queue[q].kind != HP_QUEUE_COMPUTE && p->role[r].queue[q].backend == backend)
                return true;
    return false;
}

static hp_status open_messages(hp_job *j, hp_error *err) {
    const hp_plugin *plugin;
    if (!j->ops->memory->host) j->comm = hp_comm_staged(j->comm, &j->there);
    if (j->options->ipc) HP_TRY(hp_comm_peer(j->comm, &j->there, j->arena, j->arena_bytes, &j->comm, err));
    if (j->comm->size == 1 || !has_backend(j->plan.program, HP_BACKEND_NCCL)) return HP_OK;
    HP_TRY(hp_plugin_load(j->plan.device, &plugin, err));
    return plugin->nccl(j->comm, &j->there, &j->comm, err);
}

static hp_status prepare_memory(hp_job *j, hp_error *err) {
    HP_TRY(allocate_arena(j, err));
    return prepare_weights(j, err);
}

static hp_status open_passes(hp_job *j, hp_error *err) {
    const bool deployed = j->plan.graph->deployed;
    HP_TRY(hp_job_pass_open(j, &j->train, j->plan.program, deployed ? HP_SPLIT_TEST : HP_SPLIT_TRAIN, err));
    if (deployed) hp_constants_release(j->constants);
    if (j->plan.eval && j->options->eval)
        HP_TRY(hp_job_pass_open(j, &j->eval, j->plan.eval, HP_SPLIT_TEST, err));
    static const int64_t DEFAULT_STEPS = 10; /* enough for a median without the first step */
    j->steps = j->options->steps ? j->options->steps : DEFAULT_STEPS;
    const bool all =
        deployed && j->train.loader && (j->options->input || strcmp(j->options->data, "synthetic") != 0);
    if (all && !j->options->steps) j->steps = hp_loader_steps(j->train.loader);
    if (j->options->epochs && j->train.loader)
        j->steps = j->options->epochs * hp_loader_steps(j->train.loader);
    return open_trace(j, err);
}

/* Makes the tuned kernels the same on all ranks before the first step. If a rank cannot import a choice the
 * others do not know, so ranks agree on the status after each pass. */
static hp_status share_tuning(const hp_job *j, const hp_job_pass *pass, hp_error *err) {
    return hp_tuning_share(j->comm, j->ops->tuning, pass->device, err);
}

hp_status hp_job_open(hp_job *j, bool *speaker, hp_error *err) {
    j->memory = hp_arena_new();
    HP_TRY(hp_comm_agree(j->comm, read_plan(j, err), speaker, err));
    HP_TRY(hp_comm_agree(j->comm, check_same_plan(j, err), speaker, err));
    HP_TRY(hp_comm_agree(j->comm, prepare_memory(j, err), speaker, err));
    HP_TRY(hp_comm_agree(j->comm, open_messages(j, err), speaker, err));
    if (j->constants) HP_TRY(hp_qparams_share(j->constants, j->comm, err));
    HP_TRY(hp_comm_agree(j->comm, open_passes(j, err), speaker, err));
    HP_TRY(hp_comm_agree(j->comm, share_tuning(j, &j->train, err), speaker, err));
    if (j->eval.device) HP_TRY(hp_comm_agree(j->comm, share_tuning(j, &j->eval, err), speaker, err));
    HP_TRY(hp_comm_agree(j->comm, j->comm->ops->join(j->comm, j->plan.program, err), speaker, err));
    HP_TRY(hp_clock_open(j->comm, &j->clock, err));
    j->patience = (hp_patience){.fixed_s = j->options->deadline_s,
                                .predicted_s = j->plan.step_s,
                                .predicted_here = hp_device_of_machine(j->plan.machine.name) != NULL};
    HP_TRY(hp_job_output_open(j, speaker, err));
    HP_TRY(open_interp(j, &j->train, err));
    return j->plan.eval && j->options->eval ? open_interp(j, &j->eval, err) : HP_OK;
}

void hp_job_close(hp_job *j) {
    hp_job_output_discard(j);
    hp_job_pass_close(j, &j->eval);
    hp_job_pass_close(j, &j->train);
    if (j->ring) hp_ring_close(j->ring);
    hp_watch_close(j->watch);
    hp_constants_close(j->constants);
    free(j->row);
    j->comm->ops->close(j->comm); /* before the arena, which other processes may have mapped */
    if (j->arena) j->there.ops->free(&j->there, j->arena, j->arena_bytes);
    hp_memory_close(&j->there);
    hp_arena_free(j->memory);
    j->ring = NULL, j->watch = NULL, j->arena = NULL, j->memory = NULL, j->comm = NULL;
}
