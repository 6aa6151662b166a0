/* bench_comm_show.h - the results of `bench comm` as text that nccl-tests' readers understand. */
#ifndef HP_BENCH_COMM_SHOW_H
#define HP_BENCH_COMM_SHOW_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* Prints one table for each series of that mode, with nccl-tests' lines before and after it. `spread`: adds
 * the spread of the samples below each row. result: see comm_run. */
void bench_comm_print(FILE *out, const json_t *result, const char *mode, bool spread);

#endif
