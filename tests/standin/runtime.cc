/* runtime.cc - streams, events and launches. */
#include "tests/standin/runtime.h"
#include "tests/standin/fiber.h"
#include "tests/standin/kernel.h"
#include "tests/standin/probe.h"

#include <algorithm>
#include <stdlib.h>
#include <thread>
#include <unistd.h>

uint64_t standin_draw() {
    standin_state &r = standin();
    const std::lock_guard<std::mutex> hold(r.lock);
    uint64_t x = r.seed + ++r.draws * 0x9e3779b97f4a7c15u; /* splitmix64 (Steele et al. 2014) */
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return r.seed ? x ^ x >> 31 : 0;
}

/* --- streams --- */

static bool ready(const standin_work &w) {
    return !w.after || w.after->happened;
}

static void pause_a_little() {
    const uint64_t draw = standin_draw() % 32;
    if (draw > 24) usleep((useconds_t)(draw - 24) * 60);
}

static void finish(cudaStream_t s, const standin_work &w) {
    standin_state &r = standin();
    const std::lock_guard<std::mutex> hold(r.lock);
    if (w.done) {
        clock_gettime(CLOCK_MONOTONIC, &w.done->at);
        w.done->happened = true;
    }
    s->busy = false;
    r.moved.notify_all();
}

/* Takes the next piece of work; false: the stream was destroyed. Work after an error is dropped. */
static bool take(cudaStream_t s, standin_work &w) {
    standin_state &r = standin();
    std::unique_lock<std::mutex> hold(r.lock);
    r.moved.wait(hold, [&] { return s->work.empty() ? s->ends : ready(s->work.front()); });
    if (s->work.empty()) return false;
    w = std::move(s->work.front());
    s->work.pop_front();
    s->busy = true;
    if (r.sticky != cudaSuccess) w.run = nullptr;
    return true;
}

static void stream_main(cudaStream_t s) {
    standin_work w;
    while (take(s, w)) {
        if (w.run) {
            standin_catch_faults();
            pause_a_little();
            w.run();
        }
        finish(s, w);
        w = {};
    }
    delete s;
}

cudaStream_t standin_new_stream() {
    const cudaStream_t s = new CUstream_st;
    std::thread(stream_main, s).detach();
    return s;
}

cudaStream_t standin_stream(cudaStream_t given) {
    standin_state &r = standin();
    if (!given) return r.streams[0];
    return std::find(r.streams.begin(), r.streams.end(), given) == r.streams.end() ? nullptr : given;
}

void standin_put(cudaStream_t s, standin_work w) {
    s->work.push_back(std::move(w));
    standin().moved.notify_all();
}

cudaError_t standin_give(cudaStream_t given, std::function<void()> run) {
    standin_state &r = standin();
    const std::lock_guard<std::mutex> hold(r.lock);
    const cudaStream_t s = standin_stream(given);
    if (!s) return cudaErrorInvalidResourceHandle;
    if (standin_capture_state(s) != cudaSuccess) return standin_noted(standin_capture_state(s));
    if (standin_captured_run(s, run)) return cudaSuccess;
    standin_put(s, {std::move(run), nullptr, nullptr});
    r.given++;
    return cudaSuccess;
}

static bool idle(const CUstream_st *s) {
    return s->work.empty() && !s->busy;
}

cudaError_t standin_drain(cudaStream_t given) {
    standin_state &r = standin();
    std::unique_lock<std::mutex> hold(r.lock);
    r.moved.wait(hold,
                 [&] { return given ? idle(given) : std::all_of(r.streams.begin(), r.streams.end(), idle); });
    return r.sticky;
}

static cudaError_t create(cudaStream_t *stream, unsigned flags) {
    if (flags != cudaStreamNonBlocking) return cudaErrorInvalidValue;
    standin_state &r = standin();
    const std::lock_guard<std::mutex> hold(r.lock);
    r.streams.push_back(*stream = standin_new_stream());
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags) {
    STANDIN_ENTER(false);
    return create(stream, flags);
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int priority) {
    STANDIN_ENTER(false);
    (void)priority;
    return create(stream, flags);
}

/* Work already submitted still runs. */
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    STANDIN_ENTER(false);
    standin_state &r = standin();
    const std::lock_guard<std::mutex> hold(r.lock);
    const auto at = std::find(r.streams.begin(), r.streams.end(), stream);
    if (!stream || at == r.streams.end()) return cudaErrorInvalidResourceHandle;
    r.streams.erase(at);
    stream->ends = true;
    r.moved.notify_all();
    return cudaSuccess;
}

static cudaStream_t locked_stream(cudaStream_t given) {
    const std::lock_guard<std::mutex> hold(standin().lock);
    return standin_stream(given);
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
    STANDIN_ENTER(true);
    const std::lock_guard<std::mutex> hold(standin().lock);
    const cudaStream_t s = standin_stream(stream);
    if (!s) return cudaErrorInvalidResourceHandle;
    return standin_noted(idle(s) ? cudaSuccess : cudaErrorNotReady);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
    STANDIN_ENTER(true);
    const cudaStream_t s = locked_stream(stream);
    return s ? standin_drain(s) : cudaErrorInvalidResourceHandle;
}

cudaError_t cudaDeviceSynchronize(void) {
    STANDIN_ENTER(true);
    return standin_drain(nullptr);
}

/* --- events --- */

static bool lives(cudaEvent_t event) {
    const std::vector<cudaEvent_t> &all = standin().events;
    return std::find(all.begin(), all.end(), event) != all.end();
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags) {
    STANDIN_ENTER(false);
    if (flags & ~(unsigned)(cudaEventBlockingSync | cudaEventDisableTiming)) return cudaErrorInvalidValue;
    const std::lock_guard<std::mutex> hold(standin().lock);
    standin().events.push_back(*event = new CUevent_st);
    return cudaSuccess;
}

/* Streams that wait for it keep waiting. */
cudaError_t cudaEventDestroy(cudaEvent_t event) {
    STANDIN_ENTER(false);
    standin_state &r = standin();
    const std::lock_guard<std::mutex> hold(r.lock);
    if (!lives(event)) return cudaErrorInvalidResourceHandle;
    r.events.erase(std::find(r.events.begin(), r.events.end(), event));
    delete event;
    return cudaSuccess;
}

static cudaError_t record(cudaEvent_t event, cudaStream_t stream, bool external) {
    const std::lock_guard<std::mutex> hold(standin().lock);
    const cudaStream_t s = standin_stream(stream);
    if (!s || !lives(event)) return cudaErrorInvalidResourceHandle;
    if (standin_capture_state(s) != cudaSuccess) return standin_noted(standin_capture_state(s));
    if (standin_captured_record(s, event, external)) return cudaSuccess;
    if (external) return standin_noted(cudaErrorInvalidValue); /* valid only in captures */
    event->captured = nullptr;
    event->last = std::make_shared<standin_moment>();
    standin_put(s, {nullptr, nullptr, event->last});
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    STANDIN_ENTER(false);
    return record(event, stream, false);
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
    STANDIN_ENTER(false);
    return record(event, stream, flags == cudaEventRecordExternal);
}

/* Waits for the last record at the time of the call, whatever is recorded later. */
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
    STANDIN_ENTER(false);
    const std::lock_guard<std::mutex> hold(standin().lock);
    const cudaStream_t s = standin_stream(stream);
    cudaError_t code = cudaSuccess;
    if (!s || !lives(event)) return cudaErrorInvalidResourceHandle;
    if (standin_capture_state(s) != cudaSuccess) return standin_noted(standin_capture_state(s));
    if (standin_captured_wait(s, event, flags == cudaEventWaitExternal, &code)) return standin_noted(code);
    /* valid only in captures */
    if (flags == cudaEventWaitExternal) return standin_noted(cudaErrorInvalidValue);
    if (event->last) standin_put(s, {nullptr, event->last, nullptr});
    return cudaSuccess;
}

static cudaError_t usable(cudaEvent_t event) {
    if (!lives(event)) return cudaErrorInvalidResourceHandle;
    return event->captured ? cudaErrorCapturedEvent : cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
    STANDIN_ENTER(true);
    const std::lock_guard<std::mutex> hold(standin().lock);
    const cudaError_t code = usable(event);
    if (code != cudaSuccess) return code;
    return standin_noted(!event->last || event->last->happened ? cudaSuccess : cudaErrorNotReady);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
    STANDIN_ENTER(true);
    standin_state &r = standin();
    std::unique_lock<std::mutex> hold(r.lock);
    const cudaError_t code = usable(event);
    if (code != cudaSuccess) return code;
    const standin_time last = event->last;
    r.moved.wait(hold, [&] { return !last || last->happened; });
    return r.sticky;
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to) {
    STANDIN_ENTER(true);
    const std::lock_guard<std::mutex> hold(standin().lock);
    for (const cudaEvent_t e : {from, to}) {
        const cudaError_t code = usable(e);
        if (code != cudaSuccess) return code;
        if (!e->last) return cudaErrorInvalidResourceHandle;
        if (!e->last->happened) return cudaErrorNotReady;
    }
    const timespec &a = from->last->at, &b = to->last->at;
    *ms = (float)(1e3 * (double)(b.tv_sec - a.tv_sec) + 1e-6 * (double)(b.tv_nsec - a.tv_nsec));
    return cudaSuccess;
}

/* --- launches --- */

static cudaError_t allowed(dim3 grid, dim3 block) {
    const uint64_t threads = (uint64_t)block.x * block.y * block.z;
    const bool some = grid.x && grid.y && grid.z && threads;
    const bool fits =
        threads <= 1024 && block.z <= 64 && grid.x <= 0x7fffffff && grid.y <= 65535 && grid.z <= 65535;
    return some && fits ? cudaSuccess : cudaErrorInvalidConfiguration;
}

/* In a graph, runs with every launch. */
static void run_kernel(dim3 grid, dim3 block, const std::function<void()> &thread) {
    const bool fails = standin_fails("kernel");
    const uint64_t draw = standin_draw();
    if (!fails) standin_run_grid(grid, block, thread, draw);
    const std::lock_guard<std::mutex> hold(standin().lock);
    standin().kernels++;
    if (fails) standin().sticky = cudaErrorIllegalAddress;
}

cudaError_t standin_launch(dim3 grid, dim3 block, cudaStream_t stream, std::function<void()> thread) {
    const cudaError_t code = standin_enter("cudaLaunchKernel", false);
    if (code != cudaSuccess) return code;
    if (allowed(grid, block) != cudaSuccess) return standin_noted(cudaErrorInvalidConfiguration);
    return standin_give(stream, [=] { run_kernel(grid, block, thread); });
}

void probe_count_calls(probe_calls *calls) {
    const standin_state &r = standin();
    const std::lock_guard<std::mutex> hold(standin().lock);
    *calls = {r.given, r.graphs, r.replayed, r.kernels};
}
