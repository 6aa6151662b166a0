/* codec.c - the table of codecs, their names, and the sizes of their output. */
#include "plan/codec/codec.h"

#include "plan/codec/codecs.h"

#include <stdlib.h>
#include <string.h>

const hp_codec_info hp_codec_infos[HP_CODEC_KINDS] = {
    [HP_CODEC_NONE] = {"none", 0, HP_U8, HP_CODEC_NOT, false},
#define CODEC(ID, name, most, dtype, sum, messages)                                                          \
    [HP_CODEC_##ID] = {name, most, HP_##dtype, HP_CODEC_##sum, messages},
#include "plan/codec/codecs.def"
};

bool hp_codec_exists(hp_codec c) {
    const int kind = hp_codec_kind_of(c), number = hp_codec_number(c);
    if (kind <= HP_CODEC_NONE || kind >= HP_CODEC_KINDS) return false;
    const int most = hp_codec_infos[kind].most;
    return most ? number >= 1 && number <= most : number == 0;
}

/* --- text --- */

static hp_status no_codec(const char *word, hp_error *err) {
    char names[160] = "";
    for (int k = HP_CODEC_NONE + 1; k < HP_CODEC_KINDS; k++) {
        const hp_codec_info *i = &hp_codec_infos[k];
        const size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "", i->name);
        if (i->most)
            snprintf(names + strlen(names), sizeof names - strlen(names), "1 to %s%d", i->name, i->most);
    }
    return hp_fail(err, HP_EUSAGE, "strategy: compress: no codec is called '%.40s'; choose %s", word, names);
}

hp_status hp_codec_parse(const char *word, hp_codec *c, hp_error *err) {
    for (int k = HP_CODEC_NONE + 1; k < HP_CODEC_KINDS; k++) {
        const hp_codec_info *i = &hp_codec_infos[k];
        const size_t n = strlen(i->name);
        if (strncmp(word, i->name, n) != 0) continue;
        char *end = NULL;
        const long number = i->most && word[n] >= '1' && word[n] <= '9' ? strtol(word + n, &end, 10) : 0;
        if (number < 0 || number > i->most || *(end ? end : word + n)) continue;
        *c = hp_codec_of((hp_codec_kind)k, (int)number);
        if (hp_codec_exists(*c)) return HP_OK;
    }
    return no_codec(word, err);
}

const char *hp_codec_text(hp_codec c, char out[HP_CODEC_TEXT]) {
    const hp_codec_info *i = hp_codec_info_of(c);
    snprintf(out, HP_CODEC_TEXT, "%.16s", i->name);
    if (i->most) snprintf(out + strlen(out), HP_CODEC_TEXT - strlen(out), "%d", hp_codec_number(c));
    return out;
}

/* --- sizes --- */

/* One for one. */
static int64_t cast_count(int64_t rows, int64_t cols, int number) {
    (void)number;
    return rows * cols;
}

/* One float32 scale per block, then one byte per value. */
static int64_t int8_count(int64_t rows, int64_t cols, int number) {
    (void)number;
    const int64_t n = rows * cols;
    return 4 * ((n + HP_CODEC_BLOCK - 1) / HP_CODEC_BLOCK) + n;
}

/* Blocks of 4 x 4, padded at the edges, with `rate` bits per value. The stream is written in words of up to
 * 64 bits, depending on how libzfp was built (zfp 1.0: zfp_stream_set_rate, stream_flush). */
static int64_t zfp_count(int64_t rows, int64_t cols, int rate) {
    const int64_t blocks = (rows + 3) / 4 * ((cols + 3) / 4);
    return (blocks * 16 * rate + 63) / 64 * 8;
}

int64_t hp_codec_count(hp_codec c, int64_t rows, int64_t cols) {
    static int64_t (*const count[HP_CODEC_KINDS])(int64_t, int64_t, int) = {[HP_CODEC_BF16] = cast_count,
                                                                            [HP_CODEC_FP16] = cast_count,
                                                                            [HP_CODEC_INT8] = int8_count,
                                                                            [HP_CODEC_ZFP] = zfp_count};
    return count[hp_codec_kind_of(c)](rows, cols, hp_codec_number(c));
}
