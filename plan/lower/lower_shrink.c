/* lower_shrink.c - messages that zfp would not make smaller. */
#include "plan/lower/lower.h"
#include "plan/codec/codecs.h"
#include "plan/program/traffic.h"
#include "plan/strategy/axes/axis_compress.h"
#include "plan/strategy/legal.h"

/* zfp is asked for and not used. */
static bool left_plain(const hp_role *r, const hp_task *t, const hp_strategy *s) {
    if (t->op != HP_TASK_SEND || hp_buffer_is_code(&r->buffer[r->operand[t->operand]])) return false;
    return hp_codec_kind_of((hp_codec)s->compress[hp_task_traffic(r, t)]) == HP_CODEC_ZFP;
}

static bool refuse(const hp_role *r, const hp_task *t, const hp_graph *g, const hp_strategy *s,
                   hp_reject *why) {
    const hp_traffic traffic = hp_task_traffic(r, t);
    const hp_codec codec = (hp_codec)s->compress[traffic];
    const hp_buffer *b = &r->buffer[r->operand[t->operand]];
    const int channels = hp_box_len(&b->box, HP_AXIS_C);
    char name[HP_CODEC_TEXT], fix[HP_COMM_TEXT];
    hp_strategy other = *s;
    other.compress[traffic] = hp_codec_of(HP_CODEC_BF16, 0);
    hp_compress_text(other.compress, fix, sizeof fix);
    hp_refuse(why, HP_REJECT_COMPRESS,
              "%s:%s makes %lld B of %lld B: %d channels of %lld pixels of %.30s in blocks of 4 x 4",
              hp_traffic_names[traffic], hp_codec_text(codec, name),
              (long long)hp_codec_box_bytes(codec, &b->box), (long long)b->bytes, channels,
              (long long)hp_box_elems(&b->box) / channels, g->layer[g->tensor[b->what].producer].name);
    return hp_fix(why, "compress=%s", fix);
}

bool hp_codes_shrink(const hp_program *p, const hp_graph *g, const hp_strategy *s, hp_reject *why) {
    for (int i = 0; i < p->n_role && !hp_compress_is_none(s->compress); i++)
        for (int t = 0; t < p->role[i].n_task; t++)
            if (left_plain(&p->role[i], &p->role[i].task[t], s))
                return refuse(&p->role[i], &p->role[i].task[t], g, s, why);
    return true;
}
