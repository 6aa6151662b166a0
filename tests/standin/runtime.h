/* runtime.h - inside of the stand-in for CUDA's runtime: streams are threads, an event points to a moment
 * that comes when a stream gets there, device memory lies at addresses that the host cannot touch.
 *
 * The environment: HPLAN_STANDIN_GPUS, how many this node has (as many as local ranks); HPLAN_STANDIN_SEED,
 * random delays between pieces of work and the order of a kernel's threads (0: no delays);
 * HPLAN_STANDIN_BYTES, a GPU's memory (4 GiB); HPLAN_STANDIN_FAIL, `call:n` or `call:n@rank`: the n-th call
 * of that name fails, from 1. Besides the functions' names: kernel, a launch that ends in an illegal address;
 * nccl, a group of messages that finds a peer dead; hang, one that never ends; peer, a copy from another
 * process's memory that never ends; adopt, another rank's choice of engines that cannot be used. */
#ifndef HP_TESTS_RUNTIME_H
#define HP_TESTS_RUNTIME_H

#include "tests/standin/cuda_runtime_api.h"

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <stdint.h>
#include <string>
#include <time.h>
#include <vector>

struct standin_moment {
    bool happened = false;
    timespec at = {0, 0};
};

using standin_time = std::shared_ptr<standin_moment>;

struct standin_work {
    std::function<void()> run;
    standin_time after, done;
};

struct standin_capture;

struct CUevent_st {
    standin_time last; /* of its last record; none: never recorded */
    std::shared_ptr<standin_capture> captured;
    int place = 0; /* there */
};

struct CUstream_st {
    std::deque<standin_work> work;
    bool busy = false, ends = false;
    std::shared_ptr<standin_capture> capture; /* that it takes part in */
    int lane = 0;                             /* there */
};

struct standin_state {
    std::mutex lock;
    std::condition_variable moved;
    std::vector<cudaStream_t> streams; /* the default one first */
    std::vector<cudaEvent_t> events;
    cudaError_t sticky = cudaSuccess; /* what no call recovers from */
    uint64_t seed = 0, draws = 0;
    int64_t given = 0, graphs = 0, replayed = 0, kernels = 0; /* probe.h */
};

/* Made on the first call; never freed, as streams may run until the process ends. */
standin_state &standin();

/* The n-th call of that name, as the environment wants it. */
bool standin_fails(const char *call);
/* What a call that may wait, or one that may not, begins with: earlier errors, injected ones. */
cudaError_t standin_enter(const char *call, bool waits);
/* Keeps what a call of this thread answers, `not ready` among it, until it is asked for. */
cudaError_t standin_noted(cudaError_t code);
#define STANDIN_ENTER(waits)                                                                                 \
    do {                                                                                                     \
        const cudaError_t entered = standin_enter(__func__, waits);                                          \
        if (entered != cudaSuccess) return entered;                                                          \
    } while (0)

uint64_t standin_draw();
int standin_rank();     /* what a launcher says; 0 */
size_t standin_bytes(); /* of a GPU's memory */

cudaStream_t standin_stream(cudaStream_t given);          /* NULL: the default one; a dead one: NULL */
cudaStream_t standin_new_stream();                        /* with its thread */
void standin_put(cudaStream_t stream, standin_work work); /* the lock is held */
/* Work of a stream, or of what is captured on it. */
cudaError_t standin_give(cudaStream_t stream, std::function<void()> run);
cudaError_t standin_drain(cudaStream_t stream); /* NULL: all */

/* graph.cc; the lock is held. Is there a capture during which this thread may not wait? That ends it. */
bool standin_capture_refuses();
/* What a stream's calls return; an error once its capture is ended so. */
cudaError_t standin_capture_state(cudaStream_t stream);
/* Do they concern a capture? Then *code is what the call returns. */
bool standin_captured_run(cudaStream_t stream, std::function<void()> &run);
bool standin_captured_wait(cudaStream_t stream, cudaEvent_t event, bool external, cudaError_t *code);
bool standin_captured_record(cudaStream_t stream, cudaEvent_t event, bool external);

/* memory.cc */
bool standin_is_device(const void *p);
bool standin_is_pinned(const void *p);
/* Says where the process touched memory it may not, from any thread; a test's handler may have come in between. */
void standin_catch_faults();
void *standin_real(const void *p);                   /* where the device's bytes are; else p */
bool standin_in_memory(const void *p, size_t bytes); /* device memory that was allocated, as a whole */

#endif
