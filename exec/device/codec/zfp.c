/* zfp.c - zfp with a fixed number of bits per value (Lindstrom, IEEE TVCG 2014), by libzfp. Pixels by
 * channels are cut into blocks of 4 x 4. The stream is the one that zfp_compress writes for such an array. */
#include "exec/device/codec/codec_codes.h"

#include <string.h>
#include <zfp.h>

enum { SIDE = 4 };

static zfp_stream *open_stream(const hp_bound *b, void *code) {
    const int64_t bytes = hp_codec_bytes(b->code.codec, b->count / b->code.cols, b->code.cols);
    bitstream *bits = stream_open(code, (size_t)bytes);
    zfp_stream *z = zfp_stream_open(bits);
    HP_ASSERT(bits && z);
    zfp_stream_set_rate(z, hp_codec_number(b->code.codec), zfp_type_float, 2, zfp_false);
    return z;
}

static void close_stream(zfp_stream *z) {
    bitstream *bits = zfp_stream_bit_stream(z);
    zfp_stream_close(z);
    stream_close(bits);
}

/* Rows or columns of a block that begins at `at` of `n`. */
static size_t side(int64_t at, int64_t n) {
    return (size_t)(n - at < SIDE ? n - at : SIDE);
}

static void encode_block(zfp_stream *z, const hp_bound *b, int64_t row, int64_t col) {
    const size_t rows = side(row, b->count / b->code.cols), cols = side(col, b->code.cols);
    float x[SIDE * SIDE];
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < cols; c++)
            x[SIDE * r + c] =
                (float)hp_code_get(b->x[0], b->dtype, (row + (int64_t)r) * b->code.cols + col + (int64_t)c);
    zfp_encode_partial_block_strided_float_2(z, x, cols, rows, 1, SIDE);
}

static void decode_block(zfp_stream *z, const hp_bound *b, int64_t row, int64_t col) {
    const size_t rows = side(row, b->count / b->code.cols), cols = side(col, b->code.cols);
    float x[SIDE * SIDE];
    zfp_decode_partial_block_strided_float_2(z, x, cols, rows, 1, SIDE);
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < cols; c++)
            hp_code_put(b->y, b->dtype, (row + (int64_t)r) * b->code.cols + col + (int64_t)c,
                        (double)x[SIDE * r + c]);
}

static void encode(const hp_bound *b) {
    const int64_t bytes = hp_codec_bytes(b->code.codec, b->count / b->code.cols, b->code.cols);
    memset((unsigned char *)b->y + bytes - 8, 0, 8); /* libzfp's words may be shorter than the plan assumes */
    zfp_stream *z = open_stream(b, b->y);
    for (int64_t row = 0; row < b->count / b->code.cols; row += SIDE)
        for (int64_t col = 0; col < b->code.cols; col += SIDE) encode_block(z, b, row, col);
    zfp_stream_flush(z);
    close_stream(z);
}

static void decode(const hp_bound *b) {
    zfp_stream *z = open_stream(b, b->x[0]);
    for (int64_t row = 0; row < b->count / b->code.cols; row += SIDE)
        for (int64_t col = 0; col < b->code.cols; col += SIDE) decode_block(z, b, row, col);
    close_stream(z);
}

const hp_code_ops hp_code_zfp = {.encode_all = encode, .decode_all = decode};
