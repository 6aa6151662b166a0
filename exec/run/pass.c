/* pass.c - one program of a job with everything that executes it: data, device, interpreter. */
#include "exec/run/pass.h"

#include "exec/run/infer_job.h"
#include "exec/run/job.h"
#include "exec/run/quantise.h"
#include "exec/run/run_tuning.h"

static hp_status load_samples(void *pass, int32_t iter, int32_t micro, void *x, hp_dtype x_dtype,
                              const hp_box *x_box, void *labels, const hp_box *label_box, hp_error *err) {
    const hp_job_pass *p = pass;
    int64_t step = iter >= 0 ? iter : -1 - iter;
    if (p->repeats) step %= hp_loader_steps(p->loader);
    return hp_loader_read(p->loader, step, micro, x, x_dtype, x_box, labels, label_box, err);
}

static void beat(void *job) {
    hp_watch_beat(((const hp_job *)job)->timing.watch);
}

static bool has_load_task(const hp_role *r) {
    for (int t = 0; t < r->n_task; t++)
        if (r->task[t].op == HP_TASK_LOAD) return true;
    return false;
}

/* While a device computes, the processors are free to read, but for the one that feeds the device. Where they
 * compute themselves they wait for a load: as many threads read as compute. */
static int32_t reading_threads(const hp_job *j) {
    if (!j->device.ops->memory->streams) return (int32_t)j->options->threads;
    return j->cores.bound.cores > 2 ? j->cores.bound.cores - 1 : 1;
}

/* Every rank opens the data, also one without a load task, as the number of steps must be the same on all.
 * Programs that only exchange messages need none. */
static hp_status open_split(hp_job *j, hp_job_pass *pass, hp_split split, hp_error *err) {
    bool any = false;
    for (int r = 0; r < pass->program->n_role; r++) any |= has_load_task(&pass->program->role[r]);
    if (!any) return HP_OK;
    hp_data_options d = j->options->data.pixels;
    d.name = j->options->data.input ? j->options->data.input : j->options->data.name;
    d.split = split;
    d.image_h = j->plan.image_h, d.image_w = j->plan.image_w, d.image_c = j->plan.graph->image_c;
    d.label_h = hp_job_logits(j)->h, d.label_w = hp_job_logits(j)->w;
    d.classes = j->plan.classes;
    d.ids = hp_graph_reads_ids(j->plan.graph);
    d.seed = j->plan.seed;
    d.pulse = (hp_pulse){beat, j};
    d.decoders = j->decoders;
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
                                 .threads = reading_threads(j),
                                 .shuffle = j->options->data.shuffle && split == HP_SPLIT_TRAIN,
                                 .eval = split == HP_SPLIT_TEST || j->plan.graph->deployed};
    return hp_loader_open(&l, &pass->loader, err);
}

/* Calibration uses training images where there are any. */
static hp_status open_data(hp_job *j, hp_job_pass *pass, hp_split split, hp_error *err) {
    hp_error ignored = {0};
    if (j->options->quantise.file && open_split(j, pass, HP_SPLIT_TRAIN, &ignored) == HP_OK) return HP_OK;
    return open_split(j, pass, split, err);
}

static hp_status open_device(hp_job *j, hp_job_pass *pass, hp_error *err) {
    const hp_device_config d = {.program = pass->program,
                                .graph = j->plan.graph,
                                .role = pass->role,
                                .replica = j->replica,
                                .memory = &j->device.memory,
                                .arena = j->device.arena,
                                .threads = (int)j->options->threads,
                                .constants = j->deployed.constants};
    return j->device.ops->open(&d, &pass->device, err);
}

hp_status hp_job_pass_open(hp_job *j, hp_job_pass *pass, const hp_program *program, hp_split split,
                           hp_error *err) {
    pass->program = program;
    pass->role = &program->role[j->role];
    pass->repeats = j->plan.graph->deployed;
    HP_TRY(open_data(j, pass, split, err));
    return open_device(j, pass, err);
}

hp_status hp_job_pass_start(hp_job *j, hp_job_pass *pass, hp_error *err) {
    const hp_interp_config c = {.program = pass->program,
                                .graph = j->plan.graph,
                                .role = pass->role,
                                .replica = j->replica,
                                .memory = &j->device.memory,
                                .arena = j->device.arena,
                                .ops = j->device.ops,
                                .device = pass->device,
                                .load = load_samples,
                                .loader = pass,
                                .observe = j->options->quantise.file ? hp_job_observe : NULL,
                                .observer = j,
                                .store = j->sink.file || j->sink.votes ? hp_job_output_write : NULL,
                                .sink = j,
                                .comm = j->comm,
                                .clock = &j->timing.clock,
                                .ring = j->timing.ring,
                                .watch = j->timing.watch,
                                .stop = j->signals.stop,
                                .yield = j->cores.bound.crowded,
                                .n_steps = pass == &j->eval ? hp_loader_steps(pass->loader)
                                                            : j->steps - j->begin.step};
    return hp_interp_new(&c, &pass->interp, err);
}

hp_status hp_job_pass_reopen(hp_job *j, hp_job_pass *pass, hp_error *err) {
    hp_interp_free(pass->interp);
    j->device.ops->close(pass->device);
    pass->interp = NULL, pass->device = NULL;
    HP_TRY(open_device(j, pass, err));
    HP_TRY(hp_tuning_share(j->comm, j->device.ops->tuning, pass->device, err));
    return hp_job_pass_start(j, pass, err);
}

void hp_job_pass_close(const hp_job *j, hp_job_pass *pass) {
    hp_interp_free(pass->interp);
    if (pass->device) j->device.ops->close(pass->device);
    hp_loader_close(pass->loader);
    hp_dataset_close(pass->data);
    *pass = (hp_job_pass){0};
}
