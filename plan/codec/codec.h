/* codec.h - message codecs (codecs.def): their names, and the encoded size of values. exec/device/codec does
 * the encoding. */
#ifndef HP_CODEC_H
#define HP_CODEC_H

#include "base/status.h"
#include "networks/graph/dtype.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum hp_codec_sum { HP_CODEC_NOT, HP_CODEC_ADDED, HP_CODEC_GATHERED, HP_CODEC_FACTORED } hp_codec_sum;

typedef struct hp_codec_info {
    const char *name;
    int32_t most;
    hp_dtype dtype;
    hp_codec_sum sum;
    bool messages;
} hp_codec_info;
extern const hp_codec_info hp_codec_infos[]; /* by hp_codec_kind (plan/codec/codecs.h) */

/* A codec and its parameter: kind | number << 8; 0: none. */
typedef uint16_t hp_codec;
static inline int hp_codec_kind_of(hp_codec c) {
    return c & 0xff;
}
static inline int hp_codec_number(hp_codec c) {
    return c >> 8;
}
/* Is it a valid codec with its parameter in range? */
bool hp_codec_exists(hp_codec c);
/* The codec's row; the codec must exist. */
static inline const hp_codec_info *hp_codec_info_of(hp_codec c) {
    return &hp_codec_infos[hp_codec_kind_of(c)];
}

enum { HP_CODEC_TEXT = 24 };
/* Parses a name such as "zfp8". Errors: HP_EUSAGE, listing the valid codecs. */
hp_status hp_codec_parse(const char *word, hp_codec *c, hp_error *err);
const char *hp_codec_text(hp_codec c, char out[HP_CODEC_TEXT]);

enum { HP_CODEC_BLOCK = 256 /* int8 values that share a scale */ };
/* Number of elements of the codec's type that encode `rows` x `cols` values; not for factoring codecs. */
int64_t hp_codec_count(hp_codec c, int64_t rows, int64_t cols);
static inline int64_t hp_codec_bytes(hp_codec c, int64_t rows, int64_t cols) {
    return hp_codec_count(c, rows, cols) * hp_dtype_bytes(hp_codec_info_of(c)->dtype);
}

#endif
