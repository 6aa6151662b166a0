/* parallel.h - independent pieces of work on several threads. */
#ifndef HP_PARALLEL_H
#define HP_PARALLEL_H

/* Calls body(self, thread, i) once for every i in 0 .. n-1, on at most `threads` threads, the caller's among them;
 * returns when all are done. `thread` is 0 .. threads-1: no two calls with the same one run at the same time. Which
 * thread gets which i differs from run to run: results belong under i. Where threads cannot be created the others do
 * their work. */
void hp_parallel_for(int threads, int n, void (*body)(void *self, int thread, int i), void *self);

/* Processors that this process may run on, at least 1. */
int hp_parallel_threads(void);

#endif
