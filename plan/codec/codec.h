/* codec.h - codecs of messages (codecs.def): their names, and how many bytes values become. What turns the values into
 * them is exec/device/codec. */
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

/* A codec with its number: kind | number << 8; 0: none. */
typedef uint16_t hp_codec;
static inline int hp_codec_kind_of(hp_codec c) {
    return c & 0xff;
}
static inline int hp_codec_number(hp_codec c) {
    return c >> 8;
}
/* Is it one, its number within its range? */
bool hp_codec_exists(hp_codec c);
/* Its row; of one that exists. */
static inline const hp_codec_info *hp_codec_info_of(hp_codec c) {
    return &hp_codec_infos[hp_codec_kind_of(c)];
}

enum { HP_CODEC_TEXT = 24 };
/* "zfp8". Errors: HP_EUSAGE, which names those there are. */
hp_status hp_codec_parse(const char *word, hp_codec *c, hp_error *err);
const char *hp_codec_text(hp_codec c, char out[HP_CODEC_TEXT]);

enum { HP_CODEC_BLOCK = 256 /* values of int8 that share a scale */ };
/* Elements of the codec's type that `rows` x `cols` values become; of codecs that do not factor them. */
int64_t hp_codec_count(hp_codec c, int64_t rows, int64_t cols);
static inline int64_t hp_codec_bytes(hp_codec c, int64_t rows, int64_t cols) {
    return hp_codec_count(c, rows, cols) * hp_dtype_bytes(hp_codec_info_of(c)->dtype);
}

#endif
