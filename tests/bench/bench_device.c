/* bench_device.c - one rank's training step on a device without data or messages: time per task kind, and per
 * layer. usage: bench_device NET IMAGE BATCH STEPS [layers] */
#include "exec/device/cpu/cpu_train.h"
#include "plan/program/program.h"
#include "plan/lower/lower.h"
#include "plan/program/print.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

/* CPU time of this thread: other processes on the machine disturb it least. */
static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

typedef struct bench {
    hp_arena *arena;
    hp_graph *graph;
    hp_program *program;
    hp_role *role;
    unsigned char *memory;
    hp_device *device;
    double *task_s; /* fastest seen */
} bench;

static hp_status prepare(bench *b, char **argv, hp_error *err) {
    const hp_strategy s = hp_strategy_default();
    const int image = atoi(argv[2]);
    const hp_lower_options o = {
        .mode = HP_MODE_TRAIN, .dtype = HP_F32, .batch = atoi(argv[3]), .place = true};
    b->arena = hp_arena_new();
    HP_TRY(hp_net_build(b->arena, argv[1], image, image, hp_net_default_classes(argv[1]), &b->graph, err));
    HP_TRY(hp_lower(b->arena, b->graph, &s, &o, &b->program, err));
    b->role = &b->program->role[0];
    const size_t page = 2 << 20, bytes = ((size_t)b->role->arena_bytes + page) / page * page;
    b->memory = aligned_alloc(page, bytes);
    if (!b->memory) return hp_fail(err, HP_EPLAN, "%zu bytes are not to be had", bytes);
    if (!getenv("SMALL_PAGES")) madvise(b->memory, bytes, MADV_HUGEPAGE);
    memset(b->memory, 0, bytes);
    b->task_s = HP_NEW(b->arena, double, b->role->n_task);
    const hp_device_config c = {
        .program = b->program, .graph = b->graph, .role = b->role, .arena = b->memory, .threads = 1};
    return hp_device_cpu.open(&c, &b->device, err);
}

/* Small numbers: times depend on them only through denormals and NaN. */
static void fill(const bench *b, int buffer) {
    float *v = (float *)(b->memory + b->role->buffer[buffer].offset);
    for (int64_t i = 0; i < b->role->buffer[buffer].bytes / 4; i++)
        v[i] = (float)((i * 2654435761u >> 7) % 1000) * 1e-4f - 0.05f;
}

static void load(const bench *b, const hp_task *t) {
    const int32_t *o = b->role->operand + t->operand;
    if (o[0] >= 0) fill(b, o[0]);
    if (o[1] >= 0) memset(b->memory + b->role->buffer[o[1]].offset, 0, (size_t)b->role->buffer[o[1]].bytes);
}

static hp_status step(bench *b, bool first, hp_error *err) {
    const hp_step s = {.step = 1, .lr = 1e-3, .momentum = 0.9, .dropout = true};
    for (int t = 0; t < b->role->n_task; t++) {
        const hp_task *task = &b->role->task[t];
        if (task->op == HP_TASK_LOAD) load(b, task);
        if (hp_task_infos[task->op].queue != HP_QUEUE_COMPUTE || task->op == HP_TASK_LOAD) continue;
        const double t0 = now_s();
        HP_TRY(hp_device_cpu.run(b->device, t, &s, err));
        const double took = now_s() - t0;
        if (first || took < b->task_s[t]) b->task_s[t] = took;
    }
    return HP_OK;
}

static const char *kind_of(const bench *b, int t, char *out, size_t n) {
    const hp_task *task = &b->role->task[t];
    const hp_layer *l = task->layer >= 0 ? &b->graph->layer[task->layer] : NULL;
    const bool bare = task->op == HP_TASK_ACCUM || !l;
    if (bare)
        snprintf(out, n, "%s", hp_task_infos[task->op].name);
    else if (l->op == HP_CONV)
        snprintf(out, n, "%s conv %dx%d s%d%s", hp_task_infos[task->op].name, l->kh, l->kw, l->stride_h,
                 l->groups > 1 ? " grouped" : "");
    else
        snprintf(out, n, "%s %s%s", hp_task_infos[task->op].name, hp_layer_infos[l->op].name,
                 l->n_in > 1 ? "+add" : "");
    return out;
}

/* Totals by kind, in order of appearance. */
static void print_kinds(const bench *b) {
    double total = 0;
    bool *done = HP_NEW(b->arena, bool, b->role->n_task);
    for (int t = 0; t < b->role->n_task; t++) {
        char kind[64], other[64];
        double sum = 0;
        int count = 0;
        kind_of(b, t, kind, sizeof kind);
        for (int u = t; u < b->role->n_task; u++) {
            if (done[u] || strcmp(kind, kind_of(b, u, other, sizeof other)) != 0) continue;
            done[u] = true;
            sum += b->task_s[u];
            count++;
        }
        total += sum;
        if (sum > 0) printf("%-28s %4d x %9.3f ms\n", kind, count, sum * 1e3);
    }
    printf("%-28s        %9.3f ms  (fastest of each task)\n", "sum", total * 1e3);
}

static void print_layers(const bench *b) {
    for (int t = 0; t < b->role->n_task; t++) {
        char label[128];
        if (b->task_s[t] > 0)
            printf("%9.3f ms %-40s %s\n", b->task_s[t] * 1e3,
                   hp_task_label(b->program, b->graph, b->role, t, label, sizeof label),
                   hp_cpu_kernel_name(b->device, t));
    }
}

int main(int argc, char **argv) {
    bench b = {0};
    hp_error err = {0};
    if (argc < 5) return HP_EUSAGE;
    if (prepare(&b, argv, &err) != HP_OK) return fprintf(stderr, "%s\n", err.text), err.code;
    fill(&b, HP_BUF_WEIGHTS);
    fill(&b, HP_BUF_STATE);
    for (int i = 0; i < atoi(argv[4]); i++) {
        const double t0 = now_s();
        if (step(&b, i == 0, &err) != HP_OK) return fprintf(stderr, "%s\n", err.text), err.code;
        const double took = now_s() - t0;
        printf("step %d: %.4f s, %.3f images/s\n", i, took, atof(argv[3]) / took);
    }
    if (argc > 5) print_layers(&b);
    print_kinds(&b);
    printf("arena %.1f MB, scratch %.1f MB\n", 1e-6 * (double)b.role->arena_bytes,
           1e-6 * (double)b.role->buffer[HP_BUF_SCRATCH].bytes);
    hp_device_cpu.close(b.device);
    hp_arena_free(b.arena);
    free(b.memory);
    return 0;
}
