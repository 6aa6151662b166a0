/* bench_replay.c - the command line of `hplan bench replay`. */
#include "cli/options/simulate.h"
#include "cli/replay/cli_replay.h"
#include "cli/show/frame.h"
#include "base/units.h"
#include "machines/here.h"

typedef struct options {
    const char *gpus, *comm, *as, *machine, *device, *cost, *rounds, *seconds, *hostfile, *launcher;
    bool json;
} options;

static const frame_option OPTIONS[] = {
    {"gpus", 0, "N", offsetof(options, gpus), 0, "number of ranks (the machine's devices)"},
    {"comm", 0, "LIST", offsetof(options, comm), 0,
     "back ends and mixes, such as mpi,allreduce:own+alltoall:shm (every one, every two)"},
    {"as", 0, "MACHINE", offsetof(options, as), 0,
     "compute takes as long as on its devices at their peak (this one)"},
    {"machine", 0, "NAME|FILE", offsetof(options, machine), 0, "what runs it (local)"},
    {"device", 0, HP_DEVICE_NAMES, offsetof(options, device), 0, "whose back ends (by the machine)"},
    {"cost", 0, "FILE", offsetof(options, cost), 0, "cost table"},
    {"rounds", 0, "R", offsetof(options, rounds), 0, "turns of each (5)"},
    {"seconds", 0, "S", offsetof(options, seconds), 0, "of each turn (1)"},
    {"hostfile", 0, "FILE", offsetof(options, hostfile), 0, "nodes, as mpirun reads them"},
    {"launcher", 0, "NAME", offsetof(options, launcher), 0, "mpirun or srun"},
    {"json", 'j', NULL, offsetof(options, json), 0, "one JSON object"},
    {0}};

static hp_status parse(frame *f, replay_request *r, hp_error *err) {
    const options *o = f->options;
    *r = (replay_request){.rounds = 5,
                          .seconds = 1,
                          .machine = o->machine,
                          .as = o->as,
                          .device = o->device,
                          .cost = o->cost,
                          .hostfile = o->hostfile,
                          .launcher = o->launcher,
                          .comm = o->comm};
    HP_TRY(hp_replay_parse(f->word[0], &r->replay, err));
    if (o->gpus) HP_TRY(hp_parse_int(o->gpus, "--gpus", 2, 1 << 12, &r->ranks, err));
    if (o->rounds) HP_TRY(hp_parse_int(o->rounds, "--rounds", 1, 1000, &r->rounds, err));
    if (o->seconds) HP_TRY(hp_parse_double(o->seconds, "--seconds", 0.01, 3600, &r->seconds, err));
    return HP_OK;
}

/* Defaults to as many ranks as the machine has devices, but at least two. */
static hp_status choose(const replay_request *r, simulate_setup *s, hp_error *err) {
    const simulate_options o = {.machine.name = r->machine, .machine.device = r->device, .strategy = "dp=1"};
    s->curves.has_strategy = true;
    s->curves.strategy = hp_strategy_default();
    return simulate_choose_machine(&o, s, err);
}

static hp_status run_all(hp_arena *arena, const replay_request *r, const workspace *w, replay_result *x,
                         hp_error *err) {
    for (int i = 0; i < x->n; i++) HP_TRY(replay_plan(arena, r, w, i, &x->series[i], err));
    return replay_measure(arena, r, x, err);
}

static hp_status run(frame *f, hp_error *err) {
    const options *o = f->options;
    replay_request r;
    replay_result x;
    simulate_setup s = {0};
    workspace w = {.dir = ""};
    HP_TRY(parse(f, &r, err));
    HP_TRY(choose(&r, &s, err));
    if (!r.ranks) r.ranks = hp_machine_devices(&s.machine) < 2 ? 2 : hp_machine_devices(&s.machine);
    if (!r.device) r.device = s.device->name;
    HP_TRY(replay_list(f->arena, &r, s.device, &x, err));
    if (!r.hostfile) HP_TRY(race_check_machine(&s.machine, "bench replay", err));
    HP_TRY(workspace_open("replay.db", &w, err));
    const hp_status status = run_all(f->arena, &r, &w, &x, err);
    workspace_close(&w);
    HP_TRY(status);
    if (o->json) return cli_print_json(replay_json(&r, &x), err);
    replay_print(&r, &x);
    return cli_finish_stdout(err);
}

int bench_replay(int argc, char **argv) {
    static const frame_command command = {
        .option = OPTIONS,
        .usage = "dlrm[:batch=B,tables=T,dim=D]|moe[:layers=L,hidden=H,tokens=N,top=K]",
        .min_word = 1,
        .max_word = 1,
        .too_few = "which traffic? hplan bench replay dlrm, or moe",
        .doc = "Runs the traffic of a recommendation model (all-to-all of embeddings, all-reduce of "
               "perceptrons) or "
               "of transformers with experts, with dummy compute of the planned length: by every back end "
               "alone, and by "
               "mixes, in rounds.\vFor example: hplan bench replay dlrm --gpus 4 --as thesis-a100",
        .run = run};
    options o = {0};
    return frame_run(&command, &o, argc, argv);
}
