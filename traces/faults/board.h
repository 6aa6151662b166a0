/* board.h - what the ranks of a node are doing, in a small file that all of them map, with a row each. Ranks
 * write their own row, anyone may read. It stays readable after a kill. */
#ifndef HP_BOARD_H
#define HP_BOARD_H

#include "base/status.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct hp_board_row { /* one cache line, so that ranks do not slow each other down */
    _Atomic uint64_t beat;    /* advances with every poll and every task */
    _Atomic int64_t doing;    /* iter << 32 | task; -1: nothing yet */
    _Atomic uint64_t host;    /* 0: the rank has not opened the board, or has closed it properly */
    _Atomic int32_t spoken;   /* used only in row 0, the board's own */
    _Atomic int32_t pid;
    _Atomic int32_t reads;   /* number of the rank's threads that read data: their beats come
                              * from rows, not polls */
    _Atomic uint64_t begin;  /* start of the process: hp_process_begin */
    _Atomic int64_t read_ns; /* hp_now_s when it last stopped reading, in ns; 0: never */
    char pad[64 - 5 * 8 - 4 * 4];
} hp_board_row;

/* Size of a board for that many ranks: row 0 is the board's, rank r has row r + 1. */
static inline size_t hp_board_bytes(int ranks) {
    return sizeof(hp_board_row) * (size_t)(ranks + 1);
}

/* A snapshot of a row. */
typedef struct hp_board_entry {
    bool here; /* the rank belongs to the node of this file and has not ended properly */
    uint64_t beat;
    int32_t pid;
    uint64_t begin;
    bool reads;
    int32_t task, iter; /* -1: none yet */
} hp_board_entry;

/* Errors: HP_EDATA (no such file, or another number of ranks). */
hp_status hp_board_read(const char *path, int ranks, hp_board_entry *entry, hp_error *err);

#endif
