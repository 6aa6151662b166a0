/* runtime.h - inside of the stand-in for CUDA's runtime. Streams are threads, an event points to a moment
 * that comes when a stream reaches it, device memory has addresses that the host cannot access.
 *
 * The environment: HPLAN_STANDIN_GPUS, GPUs of this node (default: the number of local ranks);
 * HPLAN_STANDIN_SEED, random delays between pieces of work and the order of a kernel's threads (0: no
 * delays); HPLAN_STANDIN_BYTES, a GPU's memory (4 GiB).
 *
 * HPLAN_STANDIN_FAIL, `call:n` or `call:n@rank`: the n-th call of that name fails, counting from 1. Besides
 * the functions' names: kernel, a launch that ends in an illegal address; nccl, a group of messages that
 * finds a peer dead; hang, one that never ends; peer, a copy from another process's memory that never ends;
 * adopt, another rank's choice of engines that cannot be used. */
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
    standin_time last; /* moment of the last record; none: never recorded */
    std::shared_ptr<standin_capture> captured;
    int place = 0; /* there */
};

struct CUstream_st {
    std::deque<standin_work> work;
    bool busy = false, ends = false;
    std::shared_ptr<standin_capture> capture; /* capture that it takes part in */
    int lane = 0;                             /* there */
};

struct standin_state {
    std::mutex lock;
    std::condition_variable moved;
    std::vector<cudaStream_t> streams; /* the default stream first */
    std::vector<cudaEvent_t> events;
    cudaError_t sticky = cudaSuccess; /* an error that no call recovers from */
    uint64_t seed = 0, draws = 0;
    int64_t given = 0, graphs = 0, replayed = 0, kernels = 0; /* probe.h */
};

/* Created by the first call and never freed, because streams may run until the process ends. */
standin_state &standin();

/* Does this call fail, as the n-th of that name, by the environment? */
bool standin_fails(const char *call);
/* Start of a call that may wait, or one that may not: reports earlier and injected errors. */
cudaError_t standin_enter(const char *call, bool waits);
/* Keeps a call's status for this thread, `not ready` included, until it is queried. */
cudaError_t standin_noted(cudaError_t code);
#define STANDIN_ENTER(waits)                                                                                 \
    do {                                                                                                     \
        const cudaError_t entered = standin_enter(__func__, waits);                                          \
        if (entered != cudaSuccess) return entered;                                                          \
    } while (0)

uint64_t standin_draw();
int standin_rank();     /* rank told by the launcher, else 0 */
size_t standin_bytes(); /* size of a GPU's memory */

cudaStream_t standin_stream(cudaStream_t given);          /* NULL: the default stream; for a dead one: NULL */
cudaStream_t standin_new_stream();                        /* with its thread */
void standin_put(cudaStream_t stream, standin_work work); /* the lock must be held */
/* Submits work to a stream, or to the capture on it. */
cudaError_t standin_give(cudaStream_t stream, std::function<void()> run);
cudaError_t standin_drain(cudaStream_t stream); /* NULL: all */

/* graph.cc; the lock must be held. Is there a capture during which this thread may not wait? If so, the
 * capture becomes invalid. */
bool standin_capture_refuses();
/* What a stream's calls return: an error after its capture became invalid. */
cudaError_t standin_capture_state(cudaStream_t stream);
/* Do the arguments concern a capture? If so, *code is the call's status. */
bool standin_captured_run(cudaStream_t stream, std::function<void()> &run);
bool standin_captured_wait(cudaStream_t stream, cudaEvent_t event, bool external, cudaError_t *code);
bool standin_captured_record(cudaStream_t stream, cudaEvent_t event, bool external);

/* memory.cc */
bool standin_is_device(const void *p);
bool standin_is_pinned(const void *p);
/* Makes invalid memory accesses report their address, from any thread; reinstalls itself if a test
 * replaced the handler. */
void standin_catch_faults();
void *standin_real(const void *p);                   /* real address of the device's bytes; else p */
bool standin_in_memory(const void *p, size_t bytes); /* whole range is allocated device memory */

#endif
