/* column_sums.h - sums over the rows of a (rows, channels) matrix on a GPU: each thread block sums a part of
 * the rows, then the parts are summed in order. The matrix alone determines the number of parts, so results
 * do not depend on the GPU; the planner counts their bytes. */
#ifndef HP_COLUMN_SUMS_H
#define HP_COLUMN_SUMS_H

#include <stdint.h>

enum {
    HP_SUMS_ROWS = 64,     /* a part has at least this many rows */
    HP_SUMS_BLOCKS = 512,  /* enough thread blocks to fill any GPU: an H200 has 132 SMs */
    HP_SUMS_CHANNELS = 128 /* columns per thread block */
};

static inline int32_t hp_column_sums_parts(int64_t rows, int32_t channels) {
    const int64_t across = (channels + HP_SUMS_CHANNELS - 1) / HP_SUMS_CHANNELS;
    const int64_t most = across < HP_SUMS_BLOCKS ? HP_SUMS_BLOCKS / (across > 0 ? across : 1) : 1,
                  parts = (rows + HP_SUMS_ROWS - 1) / HP_SUMS_ROWS;
    return (int32_t)(parts < 1 ? 1 : parts < most ? parts : most);
}

/* Bytes of two float64 sums per part and channel. */
static inline int64_t hp_column_sums_bytes(int64_t rows, int32_t channels) {
    return 2 * 8 * (int64_t)hp_column_sums_parts(rows, channels) * channels;
}

#endif
