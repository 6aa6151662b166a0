/* cmd_bench_comm.c - times collectives and messages between this machine's ranks, every operation with every
 * back end, and checks the results. */
#include "cli/bench/bench_commands.h"

#include "cli/bench/comm_predict.h"
#include "cli/bench/comm_series.h"
#include "cli/launch/hostfile.h"
#include "cli/show/bench_comm_show.h"
#include "cli/show/frame.h"
#include "base/units.h"
#include "machines/here.h"
#include "traces/outfile.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

typedef struct options {
    const char *from, *to, *factor, *iterations, *warmup, *turns;
    const char *op, *backend, *gpus, *dtype, *reduction, *root, *mode, *hostfile, *launcher, *out;
    const char *machine, *cost, *per_node;
    bool json, spread, predict;
} options;

static const frame_option OPTIONS[] = {
    {"minbytes", 'b', "BYTES", offsetof(options, from), 0, "the smallest size, of the whole data (8)"},
    {"maxbytes", 'e', "BYTES", offsetof(options, to), 0, "the largest (16Mi)"},
    {"stepfactor", 'f', "F", offsetof(options, factor), 0, "from one size to the next (4)"},
    {"iters", 'n', "N", offsetof(options, iterations), 0, "iterations of each turn (20)"},
    {"warmup_iters", 'w', "N", offsetof(options, warmup), 0,
     "iterations before each turn that do not count (3)"},
    {"turns", 0, "N", offsetof(options, turns), 0, "turns of each back end at each size (3)"},
    {"op", 0, "LIST", offsetof(options, op), 0, "collectives and sendrecv (all)"},
    {"backend", 0, "LIST", offsetof(options, backend), 0,
     "of own,mpi,shm, or with an algorithm as in own.ring; auto: each as it chooses itself; all: every "
     "algorithm (auto)"},
    {"gpus", 0, "N", offsetof(options, gpus), 0, "number of ranks (the machine's cores)"},
    {"ranks", 0, "N", offsetof(options, gpus), 0, "the same"},
    {"datatype", 'd', "T", offsetof(options, dtype), 0, "f32, f64, i32, u8, bf16, f16, i8 (f32)"},
    {"dtype", 0, "T", offsetof(options, dtype), 0, "the same"},
    {"reduction", 'o', "R", offsetof(options, reduction), 0, "sum, min, max, avg (sum)"},
    {"root", 'r', "RANK", offsetof(options, root), 0, "of broadcast, reduce, gather, scatter (0)"},
    {"mode", 0, "MODE", offsetof(options, mode), 0,
     "which times the table shows: pipelined, iterations back to back as in nccl-tests; barriered, a barrier "
     "before each as "
     "in OSU's (pipelined)"},
    {"verbose", 'v', NULL, offsetof(options, spread), 0, "min, median, p99 and max below each row"},
    {"hostfile", 0, "FILE", offsetof(options, hostfile), 0, "nodes, as mpirun reads them"},
    {"launcher", 0, "NAME", offsetof(options, launcher), 0, "mpirun or srun"},
    {"predict", 0, NULL, offsetof(options, predict), 0,
     "say what a machine would take, from its cost table; nothing runs"},
    {"machine", 0, "NAME|FILE", offsetof(options, machine), 0, "the machine that --predict is for"},
    {"cost", 0, "FILE", offsetof(options, cost), 0,
     "the cost table of --predict (the machine's, or shipped)"},
    {"ranks-per-node", 0, "N", offsetof(options, per_node), 0, "with --predict (a node's devices)"},
    {"out", 0, "FILE", offsetof(options, out), 0, "write there instead of to stdout"},
    {"json", 'j', NULL, offsetof(options, json), 0, "one JSON object, with both modes"},
    {0}};

/* --- the command line --- */

static hp_status parse_size(const char *text, const char *what, int64_t *bytes, hp_error *err) {
    if (!text) return HP_OK;
    if (hp_parse_bytes(text, bytes, err) != HP_OK) return hp_fail_in(err, what);
    return *bytes >= 1 ? HP_OK : hp_fail(err, HP_EUSAGE, "%s: at least one byte", what);
}

static hp_status parse_number(const char *text, const char *what, int64_t low, int64_t high, int64_t *value,
                              hp_error *err) {
    return text ? hp_parse_int(text, what, low, high, value, err) : HP_OK;
}

static hp_status parse_name(hp_arena *arena, const char *text, const char *what, const char *const *names,
                            int n, const char **value, hp_error *err) {
    const char *all = "";
    bool found = !text;
    for (int i = 0; i < n && names[i]; i++) {
        if (text && strcmp(names[i], text) == 0) *value = names[i], found = true;
        all = hp_arena_printf(arena, "%s%s%s", all, i ? ", " : "", names[i]);
    }
    if (found) return HP_OK;
    return hp_fail(err, HP_EUSAGE, "%s: there is no '%.40s'; choose %s", what, text, all);
}

static hp_status parse_sizes(const options *o, comm_request *r, hp_error *err) {
    HP_TRY(parse_size(o->from, "--minbytes", &r->from_bytes, err));
    HP_TRY(parse_size(o->to, "--maxbytes", &r->to_bytes, err));
    HP_TRY(parse_number(o->factor, "--stepfactor", 2, 1 << 20, &r->factor, err));
    if (r->to_bytes >= r->from_bytes) return HP_OK;
    if (o->to)
        return hp_fail(err, HP_EUSAGE, "-e %lld is below -b %lld: the smallest size comes first",
                       (long long)r->to_bytes, (long long)r->from_bytes);
    r->to_bytes = r->from_bytes;
    return HP_OK;
}

static hp_status parse(hp_arena *arena, const options *o, comm_request *r, hp_error *err) {
    static const char *const LAUNCHERS[] = {"mpirun", "srun"};
    *r = (comm_request){.dtype = "f32",
                        .reduction = "sum",
                        .hostfile = o->hostfile,
                        .from_bytes = 8,
                        .to_bytes = 16 << 20,
                        .factor = 4,
                        .iterations = 20,
                        .warmup = 3,
                        .turns = 3};
    HP_TRY(parse_sizes(o, r, err));
    HP_TRY(parse_number(o->iterations, "--iters", 1, 1000000, &r->iterations, err));
    HP_TRY(parse_number(o->warmup, "--warmup_iters", 0, 1000000, &r->warmup, err));
    HP_TRY(parse_number(o->turns, "--turns", 1, 1000, &r->turns, err));
    HP_TRY(parse_number(o->gpus, "--gpus", 2, 1 << 16, &r->ranks, err));
    HP_TRY(parse_name(arena, o->launcher, "--launcher", LAUNCHERS, 2, &r->launcher, err));
    HP_TRY(parse_name(arena, o->dtype, "--dtype", hp_dtype_names, HP_DTYPES, &r->dtype, err));
    return parse_name(arena, o->reduction, "--reduction", hp_reduction_names, HP_REDUCTIONS, &r->reduction,
                      err);
}

/* --- the nodes --- */

/* Places ranks as mpirun does: without slots, each core is one. */
static hp_status place_ranks(const options *o, const hp_here *here, comm_request *r, hp_error *err) {
    given_nodes given;
    HP_TRY(given_nodes_read(o->hostfile, &given, err));
    if (!given.slots) given.slots = (given.most_slots = here->cores) * given.nodes;
    if (r->ranks == 0) r->ranks = given.slots < 2 ? 2 : given.slots;
    r->per_node = given_nodes_fullest(&given, (int)r->ranks);
    return parse_number(o->root, "--root", 0, r->ranks - 1, &r->root, err);
}

/* Two buffers, one reserve, as many in shared memory, and one in the library. */
static hp_status check_memory(const hp_here *here, const comm_request *r, hp_error *err) {
    static const double BUFFERS = 7;
    char need[32], have[32], fits[32];
    const double bytes = BUFFERS * (double)r->to_bytes * (double)r->per_node;
    if (here->free_bytes <= 0 || bytes <= (double)here->free_bytes) return HP_OK;
    return hp_fail(
        err, HP_EPLAN, "%lld ranks of a node need %s for the largest size, %s are free: give -e %.0f (%s)",
        (long long)r->per_node, hp_format_bytes(bytes, need), hp_format_bytes((double)here->free_bytes, have),
        (double)here->free_bytes / BUFFERS / (double)r->per_node,
        hp_format_bytes((double)here->free_bytes / BUFFERS / (double)r->per_node, fits));
}

/* --- the work --- */

static hp_status write_result(FILE *out, const json_t *result, const char *mode, const options *o) {
    if (!o->json)
        bench_comm_print(out, result, mode, o->spread);
    else if (json_dumpf(result, out, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(17)) != 0 ||
             fputc('\n', out) == EOF)
        return HP_EIO;
    return fflush(out) == 0 && !ferror(out) ? HP_OK : HP_EIO;
}

static hp_status write_file(const json_t *result, const char *mode, const options *o, hp_error *err) {
    hp_outfile out;
    HP_TRY(hp_outfile_open(o->out, &out, err));
    write_result(out.f, result, mode, o); /* errors are reported at the end */
    return hp_outfile_commit(&out, err);
}

static hp_status show_and_release(json_t *result, const char *mode, const options *o, hp_error *err) {
    hp_status s = HP_OK;
    if (o->out)
        s = write_file(result, mode, o, err);
    else if (write_result(stdout, result, mode, o) != HP_OK)
        s = cli_finish_stdout(err);
    json_decref(result);
    return s;
}

/* --- predictions --- */

/* Rejects options that belong only to a run, or only to a prediction. */
static hp_status check_kind(const options *o, hp_error *err) {
    const char *const of_run[][2] = {{o->iterations, "--iters"},  {o->warmup, "--warmup_iters"},
                                     {o->turns, "--turns"},       {o->mode, "--mode"},
                                     {o->hostfile, "--hostfile"}, {o->launcher, "--launcher"}},
                      *const of_prediction[][2] = {
                          {o->machine, "--machine"}, {o->cost, "--cost"}, {o->per_node, "--ranks-per-node"}};
    for (size_t i = 0; o->predict && i < sizeof of_run / sizeof *of_run; i++)
        if (of_run[i][0])
            return hp_fail(err, HP_EUSAGE, "%s: with --predict nothing runs; leave it out", of_run[i][1]);
    for (size_t i = 0; !o->predict && i < sizeof of_prediction / sizeof *of_prediction; i++)
        if (of_prediction[i][0])
            return hp_fail(err, HP_EUSAGE,
                           "%s: what runs, runs here; add --predict to ask what a machine would take",
                           of_prediction[i][1]);
    return HP_OK;
}

static hp_status place_predicted(const options *o, const hp_machine *m, comm_request *r, hp_error *err) {
    HP_TRY(parse_number(o->per_node, "--ranks-per-node", 1, 1 << 16, &r->per_node, err));
    HP_TRY(comm_predict_place(m, r, err));
    return parse_number(o->root, "--root", 0, r->ranks - 1, &r->root, err);
}

static hp_status predict(hp_arena *arena, const options *o, comm_request *r, hp_error *err) {
    hp_machine m;
    hp_cost_table *t = NULL;
    json_t *result = NULL;
    HP_TRY(hp_machine_load(o->machine ? o->machine : "local", &m, err));
    if (*m.assumed) fprintf(stderr, "hplan: %.60s: assumed: %s\n", o->machine, m.assumed);
    HP_TRY(hp_cost_load(arena, o->cost, &m, &t, err));
    HP_TRY(place_predicted(o, &m, r, err));
    const comm_where where = {.device = &hp_devices[m.device.is_cpu ? HP_DEVICE_CPU : HP_DEVICE_CUDA],
                              .ranks = (int32_t)r->ranks,
                              .root = (int32_t)r->root,
                              .per_node = (int32_t)r->per_node};
    const char *usual = m.device.is_cpu ? "auto" : hp_backend_names[HP_BACKEND_NCCL];
    HP_TRY(comm_series_list(arena, &where, o->op ? o->op : "all", o->backend ? o->backend : usual, &r->series,
                            err));
    if (o->out) HP_TRY(hp_new_file_check_plain(o->out, err));
    comm_predict(t, &m, r, &result);
    return show_and_release(result, "pipelined", o, err);
}

/* --- the command --- */

static hp_status run(frame *f, hp_error *err) {
    static const char *const MODES[] = {"pipelined", "barriered"};
    const options *o = f->options;
    const char *mode = MODES[0];
    comm_request r;
    hp_here here;
    json_t *result = NULL;
    HP_TRY(check_kind(o, err));
    HP_TRY(parse(f->arena, o, &r, err));
    if (o->predict) return predict(f->arena, o, &r, err);
    HP_TRY(parse_name(f->arena, o->mode, "--mode", MODES, 2, &mode, err));
    HP_TRY(hp_here_read(&hp_here_system, &here, err));
    HP_TRY(place_ranks(o, &here, &r, err));
    const comm_where where = {.device = &hp_devices[HP_DEVICE_CPU],
                              .ranks = (int32_t)r.ranks,
                              .root = (int32_t)r.root,
                              .per_node = (int32_t)r.per_node};
    HP_TRY(comm_series_list(f->arena, &where, o->op ? o->op : "all", o->backend ? o->backend : "auto",
                            &r.series, err));
    HP_TRY(check_memory(&here, &r, err));
    if (o->out) HP_TRY(hp_new_file_check_plain(o->out, err));
    const hp_status status = comm_run(f->arena, &r, &result, err);
    if (status == HP_OK) return show_and_release(result, mode, o, err);
    json_decref(result);
    return status;
}

int bench_comm(int argc, char **argv) {
    static const frame_command command = {.option = OPTIONS,
                                          .doc = "Times collectives and messages among ranks of this "
                                                 "machine, every operation by every back end in turn, and "
                                                 "checks every element that they deliver. Prints tables as "
                                                 "nccl-tests does.\vFor example: hplan bench comm "
                                                 "--op allreduce,alltoall --backend all -b 8 -e 16Mi -f 4",
                                          .run = run};
    options o = {0};
    return frame_run(&command, &o, argc, argv);
}
