/* replay.c - parses workloads and builds their programs. */
#include "replays/replay.h"

#include "base/text.h"
#include "base/units.h"
#include "replays/replay_inside.h"

#include <string.h>

typedef struct key {
    const char *name;
    int64_t usual, most;
} key;

static const struct kind {
    const char *name;
    key key[HP_REPLAY_KEYS];
    void (*make)(replay_maker *m, const hp_replay *r);
    int (*tasks)(const hp_replay *r);
    void (*volumes)(const hp_replay *r, int32_t ranks, hp_replay_volume *out);
} kinds[HP_REPLAYS] = {
    [HP_REPLAY_DLRM] = {"dlrm",
                        {{"batch", 2048, 1 << 20}, {"tables", 26, 4096}, {"dim", 128, 4096}},
                        replay_dlrm,
                        replay_dlrm_tasks,
                        replay_dlrm_volumes},
    [HP_REPLAY_MOE] =
        {"moe",
         {{"layers", 4, 1024}, {"hidden", 512, 1 << 15}, {"tokens", 1024, 1 << 20}, {"top", 1, 16}},
         replay_moe,
         replay_moe_tasks,
         replay_moe_volumes},
};

/* --- text --- */

static int n_keys(const struct kind *k) {
    int n = 0;
    while (n < HP_REPLAY_KEYS && k->key[n].name) n++;
    return n;
}

static hp_status no_key(const struct kind *k, const char *word, size_t length, hp_error *err) {
    char all[80] = "";
    const hp_text out = {all, sizeof all};
    for (int i = 0; i < n_keys(k); i++) hp_text_add(out, "%s%s", i ? ", " : "", k->key[i].name);
    return hp_fail(err, HP_EUSAGE, "%s has no '%.*s'; choose %s, each with = and a number", k->name,
                   (int)(length < 40 ? length : 40), word, all);
}

/* Parses "batch=64"; *word moves to the character that ends it. */
static hp_status parse_key(const struct kind *k, hp_replay *r, const char **word, hp_error *err) {
    const size_t length = strcspn(*word, ","), name = strcspn(*word, "=,");
    char value[32];
    int i = 0;
    while (i < n_keys(k) && (strncmp(k->key[i].name, *word, name) != 0 || k->key[i].name[name])) i++;
    if (i == n_keys(k) || name == length) return no_key(k, *word, length, err);
    snprintf(value, sizeof value, "%.*s", (int)(length - name - 1), *word + name + 1);
    HP_TRY(hp_parse_int(value, k->key[i].name, 1, k->key[i].most, &r->value[i], err));
    *word += length;
    return HP_OK;
}

hp_status hp_replay_parse(const char *text, hp_replay *r, hp_error *err) {
    const size_t length = strcspn(text, ":");
    int kind = 0;
    while (kind < HP_REPLAYS && (strncmp(kinds[kind].name, text, length) != 0 || kinds[kind].name[length]))
        kind++;
    if (kind == HP_REPLAYS)
        return hp_fail(err, HP_EUSAGE, "there is no replay '%.40s'; choose %s or %s", text, kinds[0].name,
                       kinds[1].name);
    *r = (hp_replay){.kind = (hp_replay_kind)kind};
    for (int i = 0; i < n_keys(&kinds[kind]); i++) r->value[i] = kinds[kind].key[i].usual;
    for (const char *word = text + length; *word;) {
        word++; /* the colon, or a comma */
        HP_TRY(parse_key(&kinds[kind], r, &word, err));
    }
    return HP_OK;
}

const char *hp_replay_text(const hp_replay *r, char out[HP_REPLAY_TEXT]) {
    const struct kind *k = &kinds[r->kind];
    const hp_text text = {out, HP_REPLAY_TEXT};
    snprintf(out, HP_REPLAY_TEXT, "%s", k->name);
    for (int i = 0; i < n_keys(k); i++)
        hp_text_add(text, "%c%s=%lld", i ? ',' : ':', k->key[i].name, (long long)r->value[i]);
    return out;
}

void hp_replay_volumes(const hp_replay *r, int32_t ranks, hp_replay_volume out[HP_REPLAY_VOLUMES]) {
    kinds[r->kind].volumes(r, ranks, out);
}

/* --- tasks --- */

int replay_compute(replay_maker *m, replay_work work, int after_a, int after_b) {
    const double by_flops = work.flops / m->way->flops_per_s, by_bytes = work.bytes / m->way->bytes_per_s;
    hp_composed t = {.op = HP_TASK_DUMMY,
                     .tag = -1,
                     .count = (int64_t)(1e9 * (by_flops > by_bytes ? by_flops : by_bytes))};
    if (after_a >= 0) t.dep[t.n_dep++] = after_a;
    if (after_b >= 0) t.dep[t.n_dep++] = after_b;
    return hp_compose_task(m->program, m->role, &t);
}

int replay_exchange(replay_maker *m, int from, int into, int64_t elems, int after) {
    const hp_composed t = {.op = HP_TASK_ALL_TO_ALL,
                           .queue = m->queue[HP_COLLECTIVE_ALL_TO_ALL],
                           .tag = m->tag++,
                           .n_operand = 2,
                           .operand = {into, from},
                           .n_dep = 1,
                           .dep = {after},
                           .count = elems};
    return hp_compose_task(m->program, m->role, &t);
}

int replay_sum(replay_maker *m, int64_t elems, int after) {
    const hp_composed t = {.op = HP_TASK_ALLREDUCE,
                           .queue = m->queue[HP_COLLECTIVE_ALLREDUCE],
                           .tag = m->tag++,
                           .n_operand = 1,
                           .operand = {hp_compose_buffer(m->role, elems)},
                           .n_dep = 1,
                           .dep = {after},
                           .count = elems};
    return hp_compose_task(m->program, m->role, &t);
}

/* Puts both on one queue, in one order, if one back end does both; else on two, with two communicators. */
static void add_queues(replay_maker *m, hp_program *p) {
    const int32_t *comm = m->way->comm;
    const hp_backend exchange = hp_comm_backend(comm[HP_TRAFFIC_ALL_TO_ALL], HP_TRAFFIC_ALL_TO_ALL,
                                                m->way->device, 1),
                     sum =
                         hp_comm_backend(comm[HP_TRAFFIC_ALLREDUCE], HP_TRAFFIC_ALLREDUCE, m->way->device, 1);
    p->group[2] = p->group[1];
    p->n_group = exchange == sum ? 2 : 3;
    m->queue[HP_COLLECTIVE_ALL_TO_ALL] =
        hp_compose_queue(m->role, (hp_queue){.kind = HP_QUEUE_COLL, .peer = 1, .backend = (int32_t)exchange});
    m->queue[HP_COLLECTIVE_ALLREDUCE] =
        exchange == sum ? m->queue[HP_COLLECTIVE_ALL_TO_ALL]
                        : hp_compose_queue(
                              m->role, (hp_queue){.kind = HP_QUEUE_COLL, .peer = 2, .backend = (int32_t)sum});
}

static void set_algorithms(const replay_maker *m) {
    for (int t = 0; t < m->role->n_task; t++) {
        hp_task *k = &m->role->task[t];
        const hp_traffic traffic = k->op == HP_TASK_ALL_TO_ALL ? HP_TRAFFIC_ALL_TO_ALL : HP_TRAFFIC_ALLREDUCE;
        const hp_algorithm a = hp_comm_algorithm(m->way->comm[traffic]);
        if (hp_task_is_collective(k) && a) k->algorithm = (uint8_t)a;
    }
}

hp_program *hp_replay_program(hp_arena *arena, const hp_graph *g, const hp_replay *r,
                              const hp_replay_way *way) {
    const struct kind *k = &kinds[r->kind];
    const hp_compose_shape shape = {.dp = way->ranks, .n_role = 1, .n_group = 1, .device = way->device->kind};
    hp_program *p = hp_compose_program(arena, &shape);
    const int n = k->tasks(r);
    const hp_compose_room room = {n, 2 * n, 2 * n, n, 2};
    replay_maker m = {.program = p, .role = &p->role[0], .way = way};
    if (way->per_node > 0 && way->per_node < way->ranks) {
        p->call = HP_NEW(arena, hp_call, 1);
        p->call[p->n_call++] = (hp_call){.per_node = way->per_node};
    }
    hp_compose_begin(arena, g, m.role, &room, 0);
    add_queues(&m, p);
    k->make(&m, r);
    set_algorithms(&m);
    hp_compose_end(m.role);
    return p;
}
