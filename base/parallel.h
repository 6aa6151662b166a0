/* parallel.h - runs independent work items on several threads. */
#ifndef HP_PARALLEL_H
#define HP_PARALLEL_H

/* Calls body(self, thread, i) once for every i in 0 .. n-1, on at most `threads` threads including the
 * caller; returns when all are done. `thread` is 0 .. threads-1; calls with the same `thread` never overlap.
 * The assignment of i to threads varies from run to run, so store results by i. If threads cannot be created,
 * the remaining ones do their work. */
void hp_parallel_for(int threads, int n, void (*body)(void *self, int thread, int i), void *self);

/* Number of processors that this process may run on, at least 1. */
int hp_parallel_threads(void);

#endif
