/* axis_compress.c - compressed messages: their text, and where they are possible. That `zero` and `sync`
 * leave gradients as they are is said here. */
#include "plan/strategy/axes/axis_compress.h"

#include "networks/graph/precision.h"
#include "plan/strategy/strategy_axis.h"

#include <string.h>

/* --- text --- */

static bool does(hp_codec c, hp_traffic t) {
    if (t == HP_TRAFFIC_ALLREDUCE) return hp_codec_info_of(c)->sum != HP_CODEC_NOT;
    return (t == HP_TRAFFIC_HALO || t == HP_TRAFFIC_STAGE) && hp_codec_info_of(c)->messages;
}

/* "halo:bf16" */
static hp_status parse_one(char *item, int32_t codec[HP_TRAFFICS], hp_error *err) {
    char *word = strchr(item, ':');
    if (word) *word++ = 0;
    for (int t = 0; word && t < HP_TRAFFICS; t++) {
        hp_codec c = 0;
        if (strcmp(hp_traffic_names[t], item) != 0) continue;
        if (codec[t]) return hp_fail(err, HP_EUSAGE, "strategy: compress: %s is given twice", item);
        HP_TRY(hp_codec_parse(word, &c, err));
        codec[t] = c;
        if (does(c, (hp_traffic)t)) return HP_OK;
        return hp_fail(err, HP_EUSAGE, "strategy: compress: %s is no codec for %s", word, item);
    }
    return hp_fail(err, HP_EUSAGE,
                   "strategy: compress: '%.40s' is not allreduce, halo or stage with a codec, for example "
                   "compress=allreduce:bf16+halo:int8",
                   item);
}

hp_status hp_compress_parse(const char *value, int32_t codec[HP_TRAFFICS], hp_error *err) {
    char copy[HP_COMM_TEXT], *rest = copy;
    snprintf(copy, sizeof copy, "%s", value);
    memset(codec, 0, sizeof *codec * HP_TRAFFICS);
    if (strcmp(value, "none") == 0) return HP_OK;
    for (char *item = strsep(&rest, "+"); item; item = strsep(&rest, "+"))
        HP_TRY(parse_one(item, codec, err));
    return HP_OK;
}

bool hp_compress_is_none(const int32_t codec[HP_TRAFFICS]) {
    for (int t = 0; t < HP_TRAFFICS; t++)
        if (codec[t]) return false;
    return true;
}

void hp_compress_text(const int32_t codec[HP_TRAFFICS], char *out, size_t n) {
    char word[HP_CODEC_TEXT];
    snprintf(out, n, "%s", hp_compress_is_none(codec) ? "none" : "");
    for (int t = 0; t < HP_TRAFFICS; t++) {
        const size_t used = strlen(out);
        if (codec[t])
            snprintf(out + used, n - used, "%s%s:%s", used ? "+" : "", hp_traffic_names[t],
                     hp_codec_text((hp_codec)codec[t], word));
    }
}

static hp_status parse_compress(const hp_axis *a, const char *value, hp_strategy *s, hp_error *err) {
    (void)a;
    return hp_compress_parse(value, s->compress, err);
}

static void print_compress(const hp_axis *a, const hp_strategy *s, char *value) {
    (void)a;
    hp_compress_text(s->compress, value, HP_STRATEGY_TEXT);
}

static bool is_none(const hp_axis *a, const hp_strategy *s) {
    (void)a;
    return hp_compress_is_none(s->compress);
}

/* --- legality --- */

/* Codecs read float32: what a graph stores in fewer bits has no more to give. */
static bool legal_compress(const hp_legal_case *c, hp_reject *why) {
    if (hp_compress_is_none(c->s->compress)) return true;
    if (c->g->deployed) {
        hp_refuse(why, HP_REJECT_COMPRESS, "%.60s is folded for inference; what is trained can be compressed",
                  c->g->net);
        return hp_fix(why, "compress=none");
    }
    if (c->s->zero.stage && c->s->compress[HP_TRAFFIC_ALLREDUCE]) {
        hp_refuse(why, HP_REJECT_COMPRESS, "zero=%d sums gradients to parts, and codecs sum whole buckets",
                  c->s->zero.stage);
        return hp_fix(why, "zero=0");
    }
    if (c->s->sync.how && c->s->compress[HP_TRAFFIC_ALLREDUCE]) {
        hp_refuse(why, HP_REJECT_COMPRESS,
                  "codecs of gradients are summed by all who hold them, not with sync=%s",
                  c->s->sync.how == HP_SYNC_PS ? "ps" : "local");
        return hp_fix(why, "sync=allreduce");
    }
    if (c->s->prec == HP_PREC_FP32 || c->s->prec == HP_PREC_TF32) return true;
    hp_refuse(why, HP_REJECT_COMPRESS, "codecs compress float32; prec=%s sends 16 bits or fewer already",
              hp_prec_names[c->s->prec]);
    return hp_fix(why, "compress=none");
}

/* Codecs run on the host's cores and read its memory. */
static bool on_device(const hp_strategy *s, const hp_device_info *device, hp_reject *why) {
    char word[HP_CODEC_TEXT];
    if (!hp_device_on_gpu(device)) return true;
    for (int t = 0; t < HP_TRAFFICS; t++) {
        if (!s->compress[t]) continue;
        hp_refuse(why, HP_REJECT_COMPRESS, "compress=%s:%s: device %.20s has no such codec",
                  hp_traffic_names[t], hp_codec_text((hp_codec)s->compress[t], word), device->name);
        return hp_fix(why, "compress=none");
    }
    return true;
}

const hp_axis hp_axis_compress = {
    .name = "compress",
    .example = "compress=halo:int8+allreduce:bf16",
    .usual = "none",
    .means = "codecs of gradient sums (allreduce), messages within a stage (halo) and between stages (stage)",
    .parse = parse_compress,
    .print = print_compress,
    .omits = is_none,
    .legal = legal_compress,
    .on_device = on_device};
