/* standin_child.h - laws of the stand-in for a GPU are tried in processes of their own: what it is told by
 * the environment it reads once, and some of them end the process. */
#ifndef HP_TESTS_STANDIN_CHILD_H
#define HP_TESTS_STANDIN_CHILD_H

#include <cuda_runtime_api.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* Ends the child. */
#define CHECK(fact)                                                                                          \
    do {                                                                                                     \
        if (!(fact)) {                                                                                       \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #fact);                                       \
            _exit(1);                                                                                        \
        }                                                                                                    \
    } while (0)

#define CUDA(call) CHECK((call) == cudaSuccess)

/* Is what the child does all right? `name`, `value`: of the environment, or NULL. */
bool child_law(void (*law)(void), const char *name, const char *value, bool quiet);

/* With several seeds: delays, and the order of threads. */
int children_failed(void (*law)(void), int seeds);
cudaStream_t new_stream(void);
cudaEvent_t new_event(void);
void *new_device(size_t bytes);
void *new_pinned(size_t bytes);

#endif
