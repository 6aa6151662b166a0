/* probe.c - what a GPU costs around its kernels: copies by size and direction, launches, events, waits; one
 * JSON object. Medians of repeated measurements; times of the device by events, of the host by its clock. */
#include "exec/cuda/runtime/cuda.h"
#include "exec/cuda/train/cuda_train_kernels.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { REPEATS = 15, BURST = 200 };

#define MUST(call)                                                                                           \
    do {                                                                                                     \
        const cudaError_t code_ = (call);                                                                    \
        if (code_ != cudaSuccess) die(#call, cudaGetErrorString(code_));                                     \
    } while (0)

_Noreturn static void die(const char *call, const char *why) {
    fprintf(stderr, "%s: %s\n", call, why);
    exit(69);
}

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *x, int n) {
    qsort(x, (size_t)n, sizeof *x, ascending);
    return x[n / 2];
}

/* --- copies --- */

typedef struct direction {
    const char *name;
    enum cudaMemcpyKind kind;
    bool to_host, from_host, pageable;
} direction;

static const direction DIRECTIONS[] = {{"h2d", cudaMemcpyHostToDevice, false, true, false},
                                       {"d2h", cudaMemcpyDeviceToHost, true, false, false},
                                       {"d2d", cudaMemcpyDeviceToDevice, false, false, false},
                                       {"h2d_pageable", cudaMemcpyHostToDevice, false, true, true},
                                       {"d2h_pageable", cudaMemcpyDeviceToHost, true, false, true}};

typedef struct room {
    void *device[2], *locked, *paged;
} room;

static double copy_s(const hp_cuda *c, const room *r, const direction *d, size_t bytes) {
    void *host = d->pageable ? r->paged : r->locked;
    double s[REPEATS];
    for (int i = -1; i < REPEATS; i++) { /* one to warm up */
        MUST(cudaStreamSynchronize(c->compute));
        const double t0 = now_s();
        MUST(cudaMemcpyAsync(d->to_host ? host : r->device[0], d->from_host ? host : r->device[1], bytes,
                             d->kind, c->compute));
        MUST(cudaStreamSynchronize(c->compute));
        if (i >= 0) s[i] = now_s() - t0;
    }
    return median(s, REPEATS);
}

static void print_copies(const hp_cuda *c, size_t most) {
    room r;
    for (int i = 0; i < 2; i++) MUST(cudaMalloc(&r.device[i], most));
    MUST(cudaMemset(r.device[1], 0x3c, most));
    MUST(cudaHostAlloc(&r.locked, most, cudaHostAllocDefault));
    r.paged = calloc(1, most);
    if (!r.paged) die("calloc", "no memory");
    printf("\"copies\":[");
    for (size_t k = 0; k < sizeof DIRECTIONS / sizeof *DIRECTIONS; k++)
        for (size_t bytes = 4096; bytes <= most; bytes *= 16) {
            const double s = copy_s(c, &r, &DIRECTIONS[k], bytes);
            printf("%s\n{\"direction\":\"%s\",\"bytes\":%zu,\"s\":%.9g,\"bytes_per_s\":%.6g}",
                   k || bytes > 4096 ? "," : "", DIRECTIONS[k].name, bytes, s, (double)bytes / s);
        }
    printf("],\n");
    for (int i = 0; i < 2; i++) MUST(cudaFree(r.device[i]));
    MUST(cudaFreeHost(r.locked));
    free(r.paged);
}

/* --- launches and events --- */

typedef struct burst {
    double given_s, done_s; /* per call: until the last is given, until the last is done */
} burst;

typedef struct subject {
    const hp_cuda *c;
    float *x;
    cudaEvent_t event;
} subject;

static void launch(const subject *s) {
    MUST(hp_cuda_accum(HP_F32, s->x, s->x + 32, 32, s->c->compute));
}

static void clear(const subject *s) {
    MUST(cudaMemsetAsync(s->x, 0, 64, s->c->compute));
}

static void record(const subject *s) {
    MUST(cudaEventRecord(s->event, s->c->compute));
}

static void wait_for(const subject *s) {
    MUST(cudaEventRecord(s->event, s->c->compute));
    MUST(cudaStreamWaitEvent(s->c->copy, s->event, 0));
}

static void query(const subject *s) {
    cudaEventQuery(s->event);
}

static burst measure(const subject *s, void (*call)(const subject *)) {
    double given[REPEATS], done[REPEATS];
    for (int r = -1; r < REPEATS; r++) {
        MUST(cudaDeviceSynchronize());
        const double t0 = now_s();
        for (int i = 0; i < BURST; i++) call(s);
        const double t1 = now_s();
        MUST(cudaDeviceSynchronize());
        if (r < 0) continue;
        given[r] = (t1 - t0) / BURST;
        done[r] = (now_s() - t0) / BURST;
    }
    return (burst){median(given, REPEATS), median(done, REPEATS)};
}

/* One kernel, given and waited for. */
static double round_trip_s(const subject *s) {
    double x[REPEATS];
    for (int r = -1; r < REPEATS; r++) {
        MUST(cudaDeviceSynchronize());
        const double t0 = now_s();
        launch(s);
        MUST(cudaStreamSynchronize(s->c->compute));
        if (r >= 0) x[r] = now_s() - t0;
    }
    return median(x, REPEATS);
}

static void print_calls(const hp_cuda *c) {
    static const struct {
        const char *name;
        void (*call)(const subject *);
    } CALLS[] = {{"kernel", launch},
                 {"memset", clear},
                 {"event_record", record},
                 {"event_record_and_wait", wait_for},
                 {"event_query", query}};
    subject s = {.c = c};
    MUST(cudaMalloc((void **)&s.x, 256));
    MUST(cudaMemset(s.x, 0, 256));
    MUST(cudaEventCreateWithFlags(&s.event, cudaEventDisableTiming));
    MUST(cudaEventRecord(s.event, c->compute));
    printf("\"calls\":{");
    for (size_t i = 0; i < sizeof CALLS / sizeof *CALLS; i++) {
        const burst b = measure(&s, CALLS[i].call);
        printf("\n\"%s\":{\"given_s\":%.6g,\"done_s\":%.6g},", CALLS[i].name, b.given_s, b.done_s);
    }
    printf("\n\"kernel_round_trip_s\":%.6g},\n", round_trip_s(&s));
    MUST(cudaEventDestroy(s.event));
    MUST(cudaFree(s.x));
}

int main(int argc, char **argv) {
    const size_t most = argc > 1 ? (size_t)atoll(argv[1]) : (size_t)1 << 28;
    size_t unused = 0, total = 0;
    hp_cuda *c = NULL;
    hp_error err = {.text = ""};
    if (hp_cuda_open(NULL, &c, &err) != HP_OK) die("hp_cuda_open", err.text);
    printf("{");
    print_copies(c, most);
    print_calls(c);
    MUST(cudaMemGetInfo(&unused, &total));
    printf("\"free_bytes\":%zu,\"total_bytes\":%zu,\"multiprocessors\":%d,\"capability\":%d}\n", unused,
           total, c->properties.multiProcessorCount, 10 * c->properties.major + c->properties.minor);
    return 0;
}
