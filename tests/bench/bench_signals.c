/* bench_signals.c - what signal handlers do to dnnl_sgemm, by whose stack they run on.
 * usage: bench_signals [SECONDS]
 *
 * A process of each kind multiplies the same matrices again and again while signals come every 200 us,
 * compares the products with the first one, and frees its memory at the end. A handler's frame lies 128 bytes
 * below the stack pointer (System V ABI, the red zone): a kernel that keeps values further down loses them,
 * unless the handler has a stack of its own or another thread takes the signals. */
#include "base/clock.h"

#include <oneapi/dnnl/dnnl.h>

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROWS = 64, COLS = 128, DEPTH = 784, STACK = 1 << 20, EVERY_US = 200 };

typedef enum way { NONE, HANDLER, OWN_STACK, THREAD, WAYS } way;
static const char *const NAMES[WAYS] = {"no signals", "handler", "handler on a stack of its own", "thread"};

static volatile sig_atomic_t signals;

static void on_signal(int number) {
    (void)number;
    signals++;
}

static void *wait_for_signals(void *set) {
    for (int number; sigwait(set, &number) == 0;) signals++;
    return NULL;
}

static void catch_signals(way w) {
    static sigset_t set;
    static char stack[STACK];
    pthread_t thread;
    const struct itimerval often = {{0, EVERY_US}, {0, EVERY_US}};
    const struct sigaction act = {.sa_handler = on_signal,
                                  .sa_flags = SA_RESTART | (w == OWN_STACK ? SA_ONSTACK : 0)};
    if (w == NONE) return;
    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    if (w == THREAD && pthread_sigmask(SIG_BLOCK, &set, NULL) == 0)
        pthread_create(&thread, NULL, wait_for_signals, &set);
    sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = STACK}, NULL);
    if (w != THREAD) sigaction(SIGALRM, &act, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
}

static void multiply(const float *a, const float *b, float *c) {
    dnnl_sgemm('N', 'N', ROWS, COLS, DEPTH, 1, a, DEPTH, b, COLS, 0, c, COLS);
}

static void work(way w, double seconds) {
    float *a = malloc(sizeof *a * ROWS * DEPTH), *b = malloc(sizeof *b * DEPTH * COLS),
          *first = malloc(sizeof *first * ROWS * COLS), *c = malloc(sizeof *c * ROWS * COLS);
    long calls = 0, wrong = 0;
    for (int i = 0; i < ROWS * DEPTH; i++) a[i] = (float)(i % 7);
    for (int i = 0; i < DEPTH * COLS; i++) b[i] = (float)(i % 5);
    multiply(a, b, first);
    catch_signals(w);
    for (const double start_s = hp_now_s(); hp_now_s() - start_s < seconds; calls++) {
        multiply(a, b, c);
        wrong += memcmp(c, first, sizeof *c * ROWS * COLS) != 0;
    }
    printf("%-30s %8ld products, %ld wrong, %6d signals\n", NAMES[w], calls, wrong, (int)signals);
    fflush(stdout);
    exit(0); /* which frees what libraries hold, and finds a damaged heap */
}

int main(int argc, char **argv) {
    const double seconds = argc > 1 ? strtod(argv[1], NULL) : 3;
    for (int w = 0; w < WAYS; w++) {
        int status = 0;
        const pid_t child = fork();
        if (child == 0) work((way)w, seconds);
        if (child < 0 || waitpid(child, &status, 0) < 0) return 1;
        if (WIFSIGNALED(status)) printf("%-30s ended by signal %d\n", NAMES[w], WTERMSIG(status));
        fflush(stdout);
    }
    return 0;
}
