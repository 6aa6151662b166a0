/* graph.cc - capture: calls on streams are recorded and replayed by every launch of the graph; each captured
 * stream is replayed on its own stream. */
#include "tests/standin/runtime.h"

#include <algorithm>
#include <thread>

namespace {
enum kind { RUN, WAIT, RECORD, WAIT_EXTERNAL, RECORD_EXTERNAL };

struct note {
    kind what;
    int lane;
    std::function<void()> run;
    int place;         /* index of the moment in the graph */
    cudaEvent_t event; /* external */
};
} // namespace

struct CUgraph_st {
    std::vector<note> notes;
    int lanes = 1, places = 0;
};

struct CUgraphExec_st {
    CUgraph_st graph;
    std::vector<cudaStream_t> stream; /* streams of lanes 1 .. */
};

struct standin_capture {
    CUgraph_st *graph;
    std::vector<cudaStream_t> stream; /* by lane */
    bool all_threads;                 /* no thread may wait or allocate; else only the one that began */
    std::thread::id thread;
    bool broken = false; /* a forbidden call was made */
};

static std::vector<std::shared_ptr<standin_capture>> under_way; /* guarded by the lock */

bool standin_capture_refuses() {
    bool refused = false;
    for (const auto &c : under_way)
        if (c->all_threads || c->thread == std::this_thread::get_id()) refused = c->broken = true;
    return refused;
}

cudaError_t standin_capture_state(cudaStream_t s) {
    return s->capture && s->capture->broken ? cudaErrorStreamCaptureInvalidated : cudaSuccess;
}

/* --- recording --- */

static void write(cudaStream_t s, kind what, std::function<void()> run, int place, cudaEvent_t event) {
    s->capture->graph->notes.push_back({what, s->lane, std::move(run), place, event});
}

bool standin_captured_run(cudaStream_t s, std::function<void()> &run) {
    if (s->capture) write(s, RUN, std::move(run), 0, nullptr);
    return s->capture != nullptr;
}

bool standin_captured_record(cudaStream_t s, cudaEvent_t event, bool external) {
    if (!s->capture) return false;
    if (external) {
        write(s, RECORD_EXTERNAL, nullptr, 0, event);
        return true;
    }
    event->captured = s->capture;
    event->place = s->capture->graph->places++;
    write(s, RECORD, nullptr, event->place, nullptr);
    return true;
}

/* A stream that waits for a captured event becomes captured as well. */
static void join(cudaStream_t s, const std::shared_ptr<standin_capture> &c) {
    s->capture = c;
    s->lane = c->graph->lanes++;
    c->stream.push_back(s);
}

static bool broken(const std::shared_ptr<standin_capture> &c, cudaError_t *code) {
    c->broken = true;
    *code = cudaErrorStreamCaptureIsolation;
    return true;
}

bool standin_captured_wait(cudaStream_t s, cudaEvent_t event, bool external, cudaError_t *code) {
    if (s->capture && external) {
        write(s, WAIT_EXTERNAL, nullptr, 0, event);
        return true;
    }
    if (!event->captured) {
        if (s->capture && event->last) return broken(s->capture, code);
        return s->capture != nullptr;
    }
    if (!event->captured->graph) return *code = cudaErrorCapturedEvent, true; /* that capture is over */
    if (!s->capture) join(s, event->captured);
    if (s->capture != event->captured) return broken(s->capture, code);
    write(s, WAIT, nullptr, event->place, nullptr);
    return true;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
    STANDIN_ENTER(false);
    const std::lock_guard<std::mutex> hold(standin().lock);
    const bool all_threads = mode == cudaStreamCaptureModeGlobal;
    if ((!all_threads && mode != cudaStreamCaptureModeThreadLocal) || !stream) return cudaErrorInvalidValue;
    if (!standin_stream(stream)) return cudaErrorInvalidResourceHandle;
    if (stream->capture) return cudaErrorInvalidValue;
    stream->capture.reset(
        new standin_capture{new CUgraph_st, {stream}, all_threads, std::this_thread::get_id()});
    stream->lane = 0;
    under_way.push_back(stream->capture);
    return cudaSuccess;
}

/* Does all work precede the first stream's end? Walks its waits backwards. */
static bool joined(const CUgraph_st &g) {
    std::vector<int> upto((size_t)g.lanes, -1);
    upto[0] = (int)g.notes.size();
    for (int i = (int)g.notes.size() - 1; i >= 0; i--) {
        const note &n = g.notes[(size_t)i];
        if (i > upto[(size_t)n.lane]) {
            if (n.what == RECORD) continue;
            return false;
        }
        if (n.what != WAIT) continue;
        for (int k = 0; k < i; k++)
            if (g.notes[(size_t)k].what == RECORD && g.notes[(size_t)k].place == n.place)
                upto[(size_t)g.notes[(size_t)k].lane] = std::max(upto[(size_t)g.notes[(size_t)k].lane], k);
    }
    return true;
}

static cudaError_t ended(const standin_capture &c, const CUgraph_st &g) {
    if (c.broken) return cudaErrorStreamCaptureInvalidated;
    return joined(g) ? cudaSuccess : cudaErrorStreamCaptureUnjoined;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph) {
    STANDIN_ENTER(false);
    const std::lock_guard<std::mutex> hold(standin().lock);
    const std::shared_ptr<standin_capture> c = standin_stream(stream) ? stream->capture : nullptr;
    *graph = nullptr;
    if (!c) return cudaErrorInvalidValue;
    if (stream->lane != 0) return cudaErrorStreamCaptureUnmatched;
    if (c->thread != std::this_thread::get_id()) return cudaErrorStreamCaptureWrongThread;
    const cudaError_t code = ended(*c, *c->graph);
    if (code == cudaSuccess)
        *graph = c->graph;
    else
        delete c->graph;
    c->graph = nullptr;
    for (const cudaStream_t s : c->stream) s->capture = nullptr;
    under_way.erase(std::find(under_way.begin(), under_way.end(), c));
    return standin_noted(code);
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus *status) {
    STANDIN_ENTER(false);
    const std::lock_guard<std::mutex> hold(standin().lock);
    const cudaStream_t s = standin_stream(stream);
    if (!s) return cudaErrorInvalidResourceHandle;
    *status = !s->capture          ? cudaStreamCaptureStatusNone
              : s->capture->broken ? cudaStreamCaptureStatusInvalidated
                                   : cudaStreamCaptureStatusActive;
    return cudaSuccess;
}

/* --- replaying --- */

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags) {
    STANDIN_ENTER(false);
    (void)flags;
    *exec = new CUgraphExec_st{*graph, {}};
    for (int i = 1; i < graph->lanes; i++) (*exec)->stream.push_back(standin_new_stream());
    return cudaSuccess;
}

/* Nothing to prepare for a launch. */
cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream) {
    STANDIN_ENTER(false);
    const std::lock_guard<std::mutex> hold(standin().lock);
    const cudaStream_t s = standin_stream(stream);
    if (!exec || !s) return cudaErrorInvalidValue;
    return s->capture ? cudaErrorStreamCaptureUnsupported : cudaSuccess;
}

static standin_time now_recorded(cudaEvent_t event) {
    event->captured = nullptr;
    return event->last = std::make_shared<standin_moment>();
}

static void replay(const note &n, cudaStream_t s, std::vector<standin_time> &moments) {
    standin_time &here = moments[(size_t)n.place];
    if (n.what == RUN) standin_put(s, {n.run, nullptr, nullptr});
    standin().replayed += n.what == RUN;
    if (n.what == WAIT) standin_put(s, {nullptr, here, nullptr});
    if (n.what == RECORD) standin_put(s, {nullptr, nullptr, here = std::make_shared<standin_moment>()});
    if (n.what == WAIT_EXTERNAL) standin_put(s, {nullptr, n.event->last, nullptr});
    if (n.what == RECORD_EXTERNAL) standin_put(s, {nullptr, nullptr, now_recorded(n.event)});
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
    STANDIN_ENTER(false);
    const std::lock_guard<std::mutex> hold(standin().lock);
    const cudaStream_t s = standin_stream(stream);
    if (!s) return cudaErrorInvalidResourceHandle;
    if (s->capture) return cudaErrorStreamCaptureUnsupported;
    standin().graphs++;
    std::vector<standin_time> moments((size_t)exec->graph.places + 1);
    for (const note &n : exec->graph.notes) replay(n, n.lane ? exec->stream[(size_t)n.lane - 1] : s, moments);
    return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
    STANDIN_ENTER(false);
    delete graph;
    return cudaSuccess;
}

/* Waits for running launches. */
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
    STANDIN_ENTER(false);
    const std::lock_guard<std::mutex> hold(standin().lock);
    for (const cudaStream_t s : exec->stream) s->ends = true;
    standin().moved.notify_all();
    delete exec;
    return cudaSuccess;
}
