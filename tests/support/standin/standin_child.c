/* standin_child.c - tries laws of the stand-in for a GPU in separate processes. */
#include "tests/support/standin/standin_child.h"

/* Resets the test's handlers, which would let it go on after a fault. */
static void child_begin(bool quiet) {
    const int fatal[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL};
    for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++) signal(fatal[i], SIG_DFL);
    if (quiet && !freopen("/dev/null", "w", stderr)) _exit(3);
    alarm(1200); /* it hangs */
}

bool child_law(void (*law)(void), const char *name, const char *value, bool quiet) {
    int status = 0;
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        child_begin(quiet);
        if (name) setenv(name, value, 1);
        law();
        _exit(0);
    }
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

int children_failed(void (*law)(void), int seeds) {
    int failed = 0;
    for (int seed = 0; seed < seeds; seed++) {
        char text[16];
        snprintf(text, sizeof text, "%d", seed);
        failed += !child_law(law, "HPLAN_STANDIN_SEED", text, false);
    }
    return failed;
}

cudaStream_t new_stream(void) {
    cudaStream_t s;
    CUDA(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    return s;
}

cudaEvent_t new_event(void) {
    cudaEvent_t e;
    CUDA(cudaEventCreateWithFlags(&e, cudaEventDefault));
    return e;
}

void *new_device(size_t bytes) {
    void *p;
    CUDA(cudaMalloc(&p, bytes));
    return p;
}

void *new_pinned(size_t bytes) {
    void *p;
    CUDA(cudaHostAlloc(&p, bytes, cudaHostAllocPortable));
    return p;
}
