/* test_runtime.c - the stand-in for CUDA's runtime keeps CUDA's laws: order within a stream, between streams
 * only by events, memory that the host cannot access, sticky errors, graphs. Gates, kernels that wait for the
 * host, make the order certain. */
#include "base/clock.h"
#include "tests/standin/probe.h"
#include "tests/support/standin/standin_child.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { N = 1000, SEEDS = 4 };

/* --- order --- */

static void one_stream(void) {
    const cudaStream_t s = new_stream();
    unsigned char *d = new_device(N), *seen = new_pinned(N);
    for (int i = 0; i < N; i++) {
        CUDA(cudaMemsetAsync(d, i % 251, 1, s));
        CUDA(cudaMemcpyAsync(seen + i, d, 1, cudaMemcpyDeviceToHost, s));
    }
    CUDA(cudaStreamSynchronize(s));
    for (int i = 0; i < N; i++) CHECK(seen[i] == i % 251);
}

static void work_of_one_stream_keeps_its_order(void **state) {
    (void)state;
    assert_int_equal(children_failed(one_stream, SEEDS), 0);
}

static void two_streams(void) {
    const cudaStream_t a = new_stream(), b = new_stream();
    const cudaEvent_t written = new_event(), read = new_event();
    unsigned char *d = new_device(N), *seen = new_pinned(N);
    for (int i = 0; i < 200; i++) {
        CUDA(cudaMemsetAsync(d, i, 1, a));
        CUDA(cudaEventRecord(written, a));
        CUDA(cudaStreamWaitEvent(b, written, 0));
        CUDA(cudaMemcpyAsync(seen + i, d, 1, cudaMemcpyDeviceToHost, b));
        CUDA(cudaEventRecord(read, b));
        CUDA(cudaStreamWaitEvent(a, read, 0));
    }
    CUDA(cudaDeviceSynchronize());
    for (int i = 0; i < 200; i++) CHECK(seen[i] == i);
}

static void events_order_two_streams(void **state) {
    (void)state;
    assert_int_equal(children_failed(two_streams, SEEDS), 0);
}

/* A stream proceeds while another one is held. */
static void no_order(void) {
    const cudaStream_t held = new_stream(), free_one = new_stream();
    volatile int32_t *gate = new_pinned(4);
    unsigned char *d = new_device(1), *seen = new_pinned(1);
    *gate = 0;
    CUDA(cudaMemset(d, 7, 1));
    CUDA(probe_wait((const int32_t *)gate, held));
    CUDA(cudaMemsetAsync(d, 8, 1, held));
    CUDA(cudaMemcpyAsync(seen, d, 1, cudaMemcpyDeviceToHost, free_one));
    CUDA(cudaStreamSynchronize(free_one));
    CHECK(*seen == 7 && cudaStreamQuery(held) == cudaErrorNotReady);
    *gate = 1;
    CUDA(cudaStreamSynchronize(held));
    CUDA(cudaMemcpy(seen, d, 1, cudaMemcpyDeviceToHost));
    CHECK(*seen == 8);
}

static void a_missing_event_is_a_race(void **state) {
    (void)state;
    assert_int_equal(children_failed(no_order, SEEDS), 0);
}

static void records(void) {
    const cudaStream_t a = new_stream(), b = new_stream();
    const cudaEvent_t e = new_event(), after = new_event();
    volatile int32_t *gate = new_pinned(4);
    *gate = 0;
    CHECK(cudaEventQuery(e) == cudaSuccess); /* never recorded */
    CUDA(cudaEventRecord(e, a));
    CUDA(cudaStreamWaitEvent(b, e, 0));
    CUDA(probe_wait((const int32_t *)gate, a));
    CUDA(cudaEventRecord(e, a));
    CUDA(cudaEventRecord(after, b)); /* waits for the first record, not the second */
    CUDA(cudaEventSynchronize(after));
    CHECK(cudaEventQuery(e) == cudaErrorNotReady);
    CUDA(cudaStreamWaitEvent(b, e, 0));
    CUDA(cudaEventDestroy(e)); /* a waiting stream keeps waiting */
    CUDA(cudaEventRecord(after, b));
    CHECK(cudaEventQuery(after) == cudaErrorNotReady);
    *gate = 1;
    CUDA(cudaEventSynchronize(after));
    CHECK(cudaEventQuery(e) == cudaErrorInvalidResourceHandle);
}

static void a_wait_is_for_the_last_record_before_it(void **state) {
    (void)state;
    assert_int_equal(children_failed(records, SEEDS), 0);
}

static void times(void) {
    const cudaStream_t s = new_stream();
    const cudaEvent_t from = new_event(), to = new_event();
    volatile int32_t *gate = new_pinned(4);
    float ms = 0;
    const double begin_s = hp_now_s();
    *gate = 0;
    CHECK(cudaEventElapsedTime(&ms, from, to) == cudaErrorInvalidResourceHandle);
    CUDA(cudaEventRecord(from, s));
    CUDA(cudaEventSynchronize(from));
    CUDA(probe_wait((const int32_t *)gate, s));
    CUDA(cudaEventRecord(to, s));
    CHECK(cudaEventElapsedTime(&ms, from, to) == cudaErrorNotReady);
    usleep(20000);
    *gate = 1;
    CUDA(cudaStreamSynchronize(s));
    CUDA(cudaEventElapsedTime(&ms, from, to));
    CHECK(ms >= 19 && (double)ms <= 1e3 * (hp_now_s() - begin_s) + 1);
}

static void events_tell_how_far_they_are_apart(void **state) {
    (void)state;
    assert_true(child_law(times, NULL, NULL, false));
}

/* --- memory --- */

static void touch(void) {
    const volatile unsigned char *d = new_device(64);
    _exit(d[3] & 0);
}

static void follow(void) { /* the launch translates only arguments */
    const cudaStream_t s = new_stream();
    int32_t *x = new_device(4), *to = new_device(4), **where = new_device(sizeof *where);
    CUDA(cudaMemcpy(where, &x, sizeof x, cudaMemcpyHostToDevice));
    CUDA(probe_follow(where, to, s));
    CUDA(cudaStreamSynchronize(s));
}

static void host_pointer(void) {
    int32_t flag = 1;
    probe_wait(&flag, new_stream());
}

static void who_touches_device_memory_from_the_host_crashes(void **state) {
    (void)state;
    assert_false(child_law(touch, NULL, NULL, true));
    assert_false(child_law(follow, NULL, NULL, true));
    assert_false(child_law(host_pointer, NULL, NULL, true));
}

static void bounds(void) {
    unsigned char *d = new_device(100), *e = new_device(300), host[300] = {0};
    CUDA(cudaMemcpy(host, d, 100, cudaMemcpyDefault));
    for (int i = 0; i < 100; i++) CHECK(host[i] == 0xff); /* NaNs */
    CHECK((uintptr_t)d % 256 == 0 && (uintptr_t)e % 256 == 0);
    CHECK(cudaMemcpy(d, host, 101, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
    CHECK(cudaMemset(e + 200, 0, 101) == cudaErrorInvalidValue);
    CHECK(cudaMemcpy(host, d, 100, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
    CHECK(cudaFree(d + 1) == cudaErrorInvalidValue);
    CUDA(cudaFree(d));
    CHECK(cudaMemcpy(host, d, 100, cudaMemcpyDefault) == cudaErrorInvalidValue);
    CHECK(cudaFree(d) == cudaErrorInvalidValue);
    CHECK((unsigned char *)new_device(100) != d);
}

static void room(void) {
    void *p, *q;
    size_t left, all;
    CUDA(cudaMalloc(&p, 6 << 20));
    CHECK(cudaMalloc(&q, 6 << 20) == cudaErrorMemoryAllocation);
    CUDA(cudaFree(p));
    CUDA(cudaMalloc(&q, 6 << 20)); /* the error is not sticky */
    CUDA(cudaMemGetInfo(&left, &all));
    CHECK(all == 10 << 20 && left == 4 << 20);
}

static void memory_has_bounds_and_an_end(void **state) {
    (void)state;
    assert_true(child_law(bounds, NULL, NULL, false));
    assert_true(child_law(room, "HPLAN_STANDIN_BYTES", "10485760", false));
}

/* Pageable memory: the source is read, and the destination written, before the call returns. */
static void pageable(void) {
    const cudaStream_t s = new_stream();
    unsigned char *d = new_device(N), here[N], there[N];
    memset(here, 5, N);
    CUDA(cudaMemcpyAsync(d, here, N, cudaMemcpyHostToDevice, s));
    memset(here, 6, N);
    CUDA(cudaMemcpyAsync(there, d, N, cudaMemcpyDeviceToHost, s));
    for (int i = 0; i < N; i++) CHECK(there[i] == 5);
}

static void rectangles(void) {
    const cudaStream_t s = new_stream();
    unsigned char *d = new_device(64), *from = new_pinned(64), *to = new_pinned(64);
    for (int i = 0; i < 64; i++) from[i] = (unsigned char)i;
    CUDA(cudaMemset(d, 0, 64));
    CUDA(cudaMemcpy2DAsync(d + 1, 8, from, 16, 3, 4, cudaMemcpyHostToDevice, s));
    CUDA(cudaMemcpyAsync(to, d, 64, cudaMemcpyDefault, s));
    CUDA(cudaStreamSynchronize(s));
    for (int i = 0; i < 64; i++) {
        const int y = i / 8, x = i % 8 - 1;
        CHECK(to[i] == (y < 4 && x >= 0 && x < 3 ? 16 * y + x : 0));
    }
}

static void copies_of_any_kind_arrive(void **state) {
    (void)state;
    assert_int_equal(children_failed(pageable, SEEDS), 0);
    assert_int_equal(children_failed(rectangles, SEEDS), 0);
}

/* --- errors --- */

static void no_gpu(void) {
    int n = 7;
    CHECK(cudaGetDeviceCount(&n) == cudaErrorNoDevice && n == 0);
    CHECK(strstr(cudaGetErrorString(cudaErrorNoDevice), "no CUDA-capable device"));
}

static void third_record(void) {
    const cudaStream_t s = new_stream();
    const cudaEvent_t e = new_event();
    CUDA(cudaEventRecord(e, s));
    CUDA(cudaEventRecord(e, s));
    CHECK(cudaEventRecord(e, s) == cudaErrorUnknown);
    CUDA(cudaEventRecord(e, s));
}

static void bad_kernel(void) {
    const cudaStream_t s = new_stream();
    volatile int32_t *gate = new_pinned(4);
    unsigned char *d = new_device(1);
    *gate = 0; /* holds the first launch, so that the second runs after both were submitted */
    CUDA(probe_wait((const int32_t *)gate, s));
    CUDA(probe_wait((const int32_t *)gate, s)); /* says nothing yet */
    *gate = 1;
    CHECK(cudaStreamSynchronize(s) == cudaErrorIllegalAddress);
    CHECK(cudaMemset(d, 0, 1) == cudaErrorIllegalAddress);
    CHECK(cudaGetLastError() == cudaErrorIllegalAddress);
}

static void asked_errors_come_and_those_of_kernels_stay(void **state) {
    (void)state;
    assert_true(child_law(no_gpu, "HPLAN_STANDIN_GPUS", "0", false));
    assert_true(child_law(third_record, "HPLAN_STANDIN_FAIL", "cudaEventRecord:3", false));
    assert_true(child_law(bad_kernel, "HPLAN_STANDIN_FAIL", "kernel:2", false));
}

/* --- graphs --- */

/* A diamond of copies: d[0] to d[1], from there to d[2] and d[3] on two streams, then all to the host. */
static void give_diamond(cudaStream_t a, cudaStream_t b, cudaEvent_t fork_at, cudaEvent_t join_at,
                         unsigned char *d, unsigned char *host) {
    CUDA(cudaMemcpyAsync(d + 1, d, 1, cudaMemcpyDeviceToDevice, a));
    CUDA(cudaEventRecord(fork_at, a));
    CUDA(cudaStreamWaitEvent(b, fork_at, 0));
    CUDA(cudaMemcpyAsync(d + 2, d + 1, 1, cudaMemcpyDeviceToDevice, b));
    CUDA(cudaMemcpyAsync(d + 3, d + 1, 1, cudaMemcpyDeviceToDevice, a));
    CUDA(cudaEventRecord(join_at, b));
    CUDA(cudaStreamWaitEvent(a, join_at, 0));
    CUDA(cudaMemcpyAsync(host, d, 4, cudaMemcpyDeviceToHost, a));
}

static void diamond(void) {
    const cudaStream_t a = new_stream(), b = new_stream();
    const cudaEvent_t fork_at = new_event(), join_at = new_event();
    unsigned char *d = new_device(4), *host = new_pinned(4);
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    memset(host, 99, 4);
    CUDA(cudaStreamBeginCapture(a, cudaStreamCaptureModeGlobal));
    give_diamond(a, b, fork_at, join_at, d, host);
    CUDA(cudaStreamEndCapture(a, &graph));
    CUDA(cudaGraphInstantiate(&exec, graph, 0));
    CUDA(cudaGraphDestroy(graph));
    CUDA(cudaDeviceSynchronize());
    CHECK(host[0] == 99 && cudaEventQuery(fork_at) == cudaErrorCapturedEvent);
    for (int i = 0; i < 20; i++) {
        CUDA(cudaMemsetAsync(d, i, 1, a));
        CUDA(cudaGraphLaunch(exec, a));
        CUDA(cudaStreamSynchronize(a));
        for (int k = 0; k < 4; k++) CHECK(host[k] == i);
    }
    CUDA(cudaGraphExecDestroy(exec));
}

static void a_graph_does_what_was_captured_each_time(void **state) {
    (void)state;
    assert_int_equal(children_failed(diamond, SEEDS), 0);
}

static void unjoined(void) {
    const cudaStream_t a = new_stream(), b = new_stream();
    const cudaEvent_t e = new_event();
    unsigned char *d = new_device(4);
    cudaGraph_t graph;
    CUDA(cudaStreamBeginCapture(a, cudaStreamCaptureModeGlobal));
    CUDA(cudaEventRecord(e, a));
    CUDA(cudaStreamWaitEvent(b, e, 0));
    CUDA(cudaMemsetAsync(d, 1, 1, b));
    CHECK(cudaStreamEndCapture(b, &graph) == cudaErrorStreamCaptureUnmatched);
    CHECK(cudaStreamEndCapture(a, &graph) == cudaErrorStreamCaptureUnjoined);
    CHECK(cudaStreamWaitEvent(b, e, 0) == cudaErrorCapturedEvent);
    CUDA(cudaDeviceSynchronize());
}

/* Later calls are refused as well, and no graph results; then the stream is as before. */
static void is_over(cudaStream_t s, unsigned char *d) {
    cudaGraph_t graph;
    CHECK(cudaMemsetAsync(d, 1, 1, s) == cudaErrorStreamCaptureInvalidated);
    CHECK(cudaStreamEndCapture(s, &graph) == cudaErrorStreamCaptureInvalidated && !graph);
    CUDA(cudaMemsetAsync(d, 1, 1, s));
    CUDA(cudaStreamSynchronize(s));
}

static void not_allowed(void) {
    const cudaStream_t a = new_stream(), b = new_stream();
    const cudaEvent_t before = new_event();
    unsigned char *d = new_device(4);
    void *more;
    CUDA(cudaEventRecord(before, b));
    CUDA(cudaStreamBeginCapture(a, cudaStreamCaptureModeThreadLocal));
    CHECK(cudaStreamWaitEvent(a, before, 0) == cudaErrorStreamCaptureIsolation);
    is_over(a, d);
    CUDA(cudaStreamBeginCapture(a, cudaStreamCaptureModeThreadLocal));
    CHECK(cudaDeviceSynchronize() == cudaErrorStreamCaptureUnsupported);
    is_over(a, d);
    CUDA(cudaStreamBeginCapture(a, cudaStreamCaptureModeGlobal));
    CHECK(cudaMalloc(&more, 1) == cudaErrorStreamCaptureUnsupported);
    is_over(a, d);
    CUDA(cudaStreamBeginCapture(a, cudaStreamCaptureModeThreadLocal));
    CHECK(cudaEventQuery(before) == cudaErrorStreamCaptureUnsupported);
    is_over(a, d);
    CHECK(cudaEventRecordWithFlags(before, a, cudaEventRecordExternal) == cudaErrorInvalidValue);
}

static void *ask_and_wait(void *stream) {
    CHECK(cudaStreamQuery(stream) == cudaSuccess);
    CUDA(cudaStreamSynchronize(stream));
    return NULL;
}

static void *try_to_end(void *stream) {
    cudaGraph_t graph;
    CHECK(cudaStreamEndCapture(stream, &graph) == cudaErrorStreamCaptureWrongThread);
    return NULL;
}

static void in_a_thread(void *(*call)(void *), void *argument) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, call, argument) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
}

/* A thread-local capture does not affect other threads. */
static void other_threads(void) {
    const cudaStream_t a = new_stream(), b = new_stream();
    unsigned char *d = new_device(4);
    cudaGraph_t graph;
    CUDA(cudaStreamBeginCapture(a, cudaStreamCaptureModeThreadLocal));
    CUDA(cudaMemsetAsync(d, 1, 1, a));
    in_a_thread(ask_and_wait, b);
    in_a_thread(try_to_end, a);
    CUDA(cudaStreamEndCapture(a, &graph));
}

/* Every launch records, and waits for, external events. */
static void external(void) {
    const cudaStream_t a = new_stream(), b = new_stream(), c = new_stream();
    const cudaEvent_t begun = new_event(), allowed = new_event(), ended = new_event();
    volatile int32_t *gate = new_pinned(4);
    unsigned char *d = new_device(4), *seen = new_pinned(4);
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    CUDA(cudaStreamBeginCapture(a, cudaStreamCaptureModeGlobal));
    CUDA(cudaEventRecordWithFlags(begun, a, cudaEventRecordExternal));
    CUDA(cudaStreamWaitEvent(a, allowed, cudaEventWaitExternal));
    CUDA(cudaMemsetAsync(d, 1, 1, a));
    CUDA(cudaEventRecordWithFlags(ended, a, cudaEventRecordExternal));
    CUDA(cudaStreamEndCapture(a, &graph));
    CUDA(cudaGraphInstantiate(&exec, graph, 0));
    for (int i = 0; i < 3; i++) {
        *gate = 0;
        CUDA(probe_wait((const int32_t *)gate, b));
        CUDA(cudaEventRecord(allowed, b));
        CUDA(cudaGraphLaunch(exec, a));
        CHECK(cudaEventQuery(ended) == cudaErrorNotReady); /* not of the previous launch */
        CUDA(cudaStreamWaitEvent(c, ended, 0));
        CUDA(cudaMemcpyAsync(seen, d, 1, cudaMemcpyDeviceToHost, c));
        CUDA(cudaEventSynchronize(begun));
        CHECK(cudaStreamQuery(a) == cudaErrorNotReady && cudaStreamQuery(c) == cudaErrorNotReady);
        CHECK(cudaGetLastError() == cudaErrorNotReady); /* or the next launch would report it */
        *gate = 1;
        CUDA(cudaStreamSynchronize(c));
        CHECK(*seen == 1 && cudaEventQuery(ended) == cudaSuccess);
        cudaGetLastError(); /* not ready */
        CUDA(cudaStreamSynchronize(a));
    }
}

static void captures_that_leave_something_out_are_refused(void **state) {
    (void)state;
    assert_int_equal(children_failed(unjoined, SEEDS), 0);
}

static void what_is_not_allowed_ends_a_capture(void **state) {
    (void)state;
    assert_int_equal(children_failed(not_allowed, SEEDS), 0);
    assert_int_equal(children_failed(other_threads, SEEDS), 0);
}

static void events_of_outside_are_those_of_the_last_launch(void **state) {
    (void)state;
    assert_int_equal(children_failed(external, SEEDS), 0);
}

static void three_kernels(void) {
    const cudaStream_t s = new_stream();
    volatile int32_t *gate = new_pinned(4);
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    probe_calls calls;
    *gate = 1;
    CUDA(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
    CUDA(probe_wait((const int32_t *)gate, s));
    CUDA(probe_wait((const int32_t *)gate, s));
    CUDA(cudaStreamEndCapture(s, &graph));
    CUDA(cudaGraphInstantiate(&exec, graph, 0));
    CUDA(cudaGraphUpload(exec, s));
    CUDA(cudaGraphLaunch(exec, s));
    CUDA(cudaStreamSynchronize(s));
    CUDA(cudaGraphLaunch(exec, s));
    probe_count_calls(&calls);
    CHECK(calls.given == 0 && calls.graphs == 2 && calls.replayed == 4);
    CHECK(cudaStreamSynchronize(s) == cudaErrorIllegalAddress);
}

static void kernels_of_graphs_fail_as_others_do(void **state) {
    (void)state;
    assert_true(child_law(three_kernels, "HPLAN_STANDIN_FAIL", "kernel:3", false));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(work_of_one_stream_keeps_its_order),
        cmocka_unit_test(events_order_two_streams),
        cmocka_unit_test(a_missing_event_is_a_race),
        cmocka_unit_test(a_wait_is_for_the_last_record_before_it),
        cmocka_unit_test(events_tell_how_far_they_are_apart),
        cmocka_unit_test(who_touches_device_memory_from_the_host_crashes),
        cmocka_unit_test(memory_has_bounds_and_an_end),
        cmocka_unit_test(copies_of_any_kind_arrive),
        cmocka_unit_test(asked_errors_come_and_those_of_kernels_stay),
        cmocka_unit_test(a_graph_does_what_was_captured_each_time),
        cmocka_unit_test(captures_that_leave_something_out_are_refused),
        cmocka_unit_test(what_is_not_allowed_ends_a_capture),
        cmocka_unit_test(events_of_outside_are_those_of_the_last_launch),
        cmocka_unit_test(kernels_of_graphs_fail_as_others_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
