/* codecs.h - codecs by name, from plan/codec/codecs.def. Only files that name or count codecs include it, so
 * that a new row recompiles only these. */
#ifndef HP_CODECS_H
#define HP_CODECS_H

#include "plan/codec/codec.h"

typedef enum hp_codec_kind {
    HP_CODEC_NONE,
#define CODEC(ID, ...) HP_CODEC_##ID,
#include "plan/codec/codecs.def"
    HP_CODEC_KINDS
} hp_codec_kind;

static inline hp_codec hp_codec_of(hp_codec_kind kind, int number) {
    return (hp_codec)((unsigned)kind | (unsigned)number << 8);
}

#endif
