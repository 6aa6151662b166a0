/* calibrate_comm.c - the jobs for messages and collectives: within a node, and between nodes if the machine
 * has several. */
#include "cli/calibrate/calibrate_jobs.h"
#include "cli/launch/hostfile.h"

/* Number of ranks, in total and per node. */
typedef struct spread {
    int32_t ranks, per_node;
} spread;

enum { MOST_SPREADS = 32, MOST_RANKS_OF_A_NODE = 16, MOST_NODES = 16 };

/* Next rank count: the powers of two, then all ranks. */
static int32_t next_count(int32_t n, int32_t most) {
    return n < most && 2 * n > most ? most : 2 * n;
}

static int list_spreads(const hp_machine *m, int32_t devices, spread out[MOST_SPREADS]) {
    int n = 0;
    for (int32_t r = 2; r <= devices && r <= MOST_RANKS_OF_A_NODE; r *= 2) out[n++] = (spread){r, r};
    for (int32_t k = 2; k <= m->nodes && k <= MOST_NODES; k = next_count(k, m->nodes)) {
        out[n++] = (spread){k * m->devices_per_node, m->devices_per_node};
        if (m->devices_per_node > 1) out[n++] = (spread){k, 1};
    }
    return n;
}

/* Describes whether the ranks are on one node or several. */
static const char *between(const spread *at) {
    return at->per_node < at->ranks ? " of several nodes" : "";
}

static calibrate_job *add_job(calibrate_jobs *jobs, calibrate_kind kind, const spread *at, hp_backend backend,
                              int64_t steps) {
    calibrate_job *j = &jobs->job[jobs->n++];
    *j = (calibrate_job){.kind = kind,
                         .dp = kind == CALIBRATE_COLLECTIVE ? at->ranks : 1,
                         .per_node = at->per_node,
                         .backend = backend,
                         .micro_batch = 1,
                         .steps = steps};
    return j;
}

static void add_messages(calibrate_jobs *jobs, const spread *at, hp_backend backend, int64_t steps) {
    if (jobs->n == CALIBRATE_JOBS) return;
    calibrate_job *j = add_job(jobs, CALIBRATE_PING_PONG, at, backend, steps);
    snprintf(j->text, sizeof j->text, "messages between 2 ranks%s by %s", between(at),
             hp_backend_names[backend]);
}

static void add_collective(calibrate_jobs *jobs, const spread *at, hp_backend backend, hp_collective what,
                           hp_algorithm algorithm, int64_t steps) {
    if (jobs->n == CALIBRATE_JOBS ||
        hp_backend_lacks((int32_t)backend, what, HP_REDUCE_SUM, HP_F32, bench_in_place(what)))
        return;
    calibrate_job *j = add_job(jobs, CALIBRATE_COLLECTIVE, at, backend, steps);
    j->what = what;
    j->algorithm = algorithm;
    const bool nodes = at->per_node < at->ranks;
    char each[32] = "";
    if (nodes) snprintf(each, sizeof each, ", %d a node,", at->per_node);
    snprintf(j->text, sizeof j->text, "%s over %d ranks%s by %s%s%s", hp_collective_infos[what].name,
             at->ranks, each, hp_backend_names[backend], algorithm ? "." : "",
             algorithm ? hp_algorithms[algorithm]->name : "");
}

/* Processors: measures each algorithm. GPUs: only the rule's choice, because nothing else is chosen there. */
static void add_collectives(calibrate_jobs *jobs, const spread *at, hp_backend backend, hp_collective what,
                            bool all, int64_t steps) {
    const hp_collective_case c = {.what = what, .size = at->ranks, .per_node = at->per_node};
    if (!all || !hp_backend_steps((int32_t)backend) || hp_device_on_gpu(jobs->device)) {
        add_collective(jobs, at, backend, what, HP_ALGORITHM_LIBRARY, steps);
        return;
    }
    for (int a = HP_ALGORITHM_LIBRARY + 1; a < HP_ALGORITHMS; a++)
        if (hp_algorithm_does((hp_algorithm)a, &c, true))
            add_collective(jobs, at, backend, what, (hp_algorithm)a, steps);
}

/* Two ranks of one GPU also exchange messages (AccDP), but not by NCCL. Between nodes, messages by shared
 * memory are MPI's. */
static void add_backend(const hp_machine *m, int32_t devices, hp_backend b, int64_t steps, bool all,
                        calibrate_jobs *jobs) {
    spread at[MOST_SPREADS];
    const int n = list_spreads(m, devices, at);
    if (b == HP_BACKEND_NCCL && m->devices_per_node < 2 && m->nodes < 2) return;
    if (b != HP_BACKEND_OWN && devices > 1) add_messages(jobs, &(spread){2, 2}, b, steps);
    if (b != HP_BACKEND_OWN && b != HP_BACKEND_SHM && m->nodes > 1)
        add_messages(jobs, &(spread){2, 1}, b, steps);
    for (int i = 0; i < n; i++)
        for (int c = 0; c < (all ? (int)HP_COLLECTIVE_BARRIER : 1); c++)
            add_collectives(jobs, &at[i], b, (hp_collective)c, all, steps);
}

void calibrate_add_comm(const hp_machine *m, int64_t steps, bool all, calibrate_jobs *jobs) {
    const int32_t devices =
        hp_device_on_gpu(jobs->device) && m->devices_per_node < 2 ? 2 : m->devices_per_node;
    if (devices < 2 && m->nodes < 2) return;
    for (int b = 0; b < (int)HP_BACKENDS; b++)
        if (hp_device_has_backend(jobs->device, (hp_backend)b))
            add_backend(m, devices, (hp_backend)b, steps, all, jobs);
}

hp_status calibrate_cluster(const hp_device_info *device, const char *name, const char *hostfile,
                            hp_machine *m, hp_error *err) {
    given_nodes given;
    HP_TRY(hp_machine_load(name, m, err));
    if (m->device.is_cpu == hp_device_on_gpu(device))
        return hp_fail(err, HP_EUSAGE, "machine %s has no devices of kind %s", m->name, device->name);
    HP_TRY(given_nodes_read(hostfile, &given, err));
    if (given.nodes >= m->nodes) return HP_OK;
    return hp_fail(err, HP_EUSAGE, "machine %s has %d nodes, --hostfile %s names %d: give as many", m->name,
                   m->nodes, hostfile, given.nodes);
}
