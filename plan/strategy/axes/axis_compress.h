/* axis_compress.h - which messages are compressed, and how: the strategy's key `compress`.
 *
 * Its text is `none`, or a codec for each kind of traffic that has one, joined by a plus:
 * `allreduce:bf16+halo:zfp8`. What a list leaves out is sent as it is. */
#ifndef HP_AXIS_COMPRESS_H
#define HP_AXIS_COMPRESS_H

#include "plan/codec/codec.h"
#include "plan/strategy/backend.h"

/* codec: hp_codec of each kind of traffic; 0: none. Errors: HP_EUSAGE. */
hp_status hp_compress_parse(const char *value, int32_t codec[HP_TRAFFICS], hp_error *err);
bool hp_compress_is_none(const int32_t codec[HP_TRAFFICS]);
void hp_compress_text(const int32_t codec[HP_TRAFFICS], char *out, size_t n);

#endif
