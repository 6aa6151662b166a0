/* standin_child.h - tries laws of the stand-in for a GPU in separate processes: it reads its environment only
 * once, and some laws end the process. */
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

/* Does the child succeed? `name`, `value`: a variable for its environment, or NULL. */
bool child_law(void (*law)(void), const char *name, const char *value, bool quiet);

/* Tries several seeds: of delays, and of the order of threads. */
int children_failed(void (*law)(void), int seeds);
cudaStream_t new_stream(void);
cudaEvent_t new_event(void);
void *new_device(size_t bytes);
void *new_pinned(size_t bytes);

#endif
