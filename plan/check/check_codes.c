/* check_codes.c - codec output has its own buffers, used only by tasks that encode, send, sum or decode it.
 *
 * check/check_data.c proves that a code holds the tensor its reader expects. check/check_gradients.c proves
 * that codes of gradients are summed and decoded. */
#include "plan/check/check_inside.h"
#include "plan/program/factors.h"

typedef struct checker {
    hp_check_at at;
    const hp_program *p;
    const hp_graph *g;
    const hp_role *r;
    const hp_task *t;
    bool *used; /* per buffer: holds the residual of a code */
} checker;

#define REFUSED(code, ...) hp_check_refuse(&c->at, code, __VA_ARGS__)

static const hp_buffer *buffer_of(const checker *c, int i) {
    return &c->r->buffer[c->r->operand[c->t->operand + i]];
}

static const hp_codec_info *info_of(const hp_buffer *b) {
    return hp_codec_info_of(b->codec);
}

/* --- what holds codes --- */

static hp_status check_buffer(const checker *c, int id) {
    const hp_buffer *b = &c->r->buffer[id];
    if (!hp_buffer_is_code(b))
        return b->codec ? REFUSED("E-TYPE", "buffer %d is no code and has a codec", id) : HP_OK;
    if (!hp_codec_exists(b->codec))
        return REFUSED("E-RANGE", "buffer %d has codec %d, which does not exist", id, b->codec);
    const bool factors = info_of(b)->sum == HP_CODEC_FACTORED;
    if (b->dtype != (factors ? c->p->dtype : (int)info_of(b)->dtype))
        return REFUSED("E-TYPE", "buffer %d has a code of %s", id, hp_dtype_names[b->dtype]);
    if (b->what < 0 ? info_of(b)->sum == HP_CODEC_NOT : !info_of(b)->messages)
        return REFUSED("E-TYPE", "buffer %d: %s is no codec for %s", id, info_of(b)->name,
                       b->what < 0 ? "gradients" : "messages");
    if (b->what < 0 && !hp_box_empty(&b->box))
        return REFUSED("E-BOX", "buffer %d has a box and no tensor", id);
    if (b->bytes % hp_dtype_bytes((hp_dtype)b->dtype))
        return REFUSED("E-COUNT", "buffer %d ends within an element", id);
    return HP_OK;
}

/* --- encode and decode --- */

/* The code must cover the whole buffer of values. */
static hp_status check_box(const checker *c, int code, int values) {
    const hp_buffer *a = buffer_of(c, code), *b = buffer_of(c, values);
    if (!hp_buffer_has_box(b) || !hp_box_equal(&a->box, &b->box) || hp_box_empty(&b->box))
        return REFUSED("E-BOX", "a code and its values are of other boxes");
    if (b->dtype != c->p->dtype)
        return REFUSED("E-TYPE", "codecs take %s, not %s", hp_dtype_names[c->p->dtype],
                       hp_dtype_names[b->dtype]);
    if (c->t->code.first || c->t->code.values != hp_box_elems(&b->box))
        return REFUSED("E-COUNT", "%lld values, the box has %lld", (long long)c->t->code.values,
                       (long long)hp_box_elems(&b->box));
    return HP_OK;
}

/* A residual that is added to the next step's gradients has a buffer of its own, used for nothing else. */
static hp_status check_residual(const checker *c, const hp_buffer *code) {
    const int32_t id = c->t->n_operand > 2 ? c->r->operand[c->t->operand + 2] : -1;
    const bool wanted = code->what < 0 && info_of(code)->sum == HP_CODEC_GATHERED;
    if (c->t->op != HP_TASK_ENCODE) return HP_OK;
    if (wanted != (id >= 0))
        return REFUSED("E-LOST", "what is lost is %s", wanted ? "forgotten" : "kept and never added");
    if (!wanted) return HP_OK;
    const hp_buffer *b = &c->r->buffer[id];
    if (b->kind != HP_BUF_CARRY || b->dtype != c->p->dtype ||
        b->bytes != c->t->code.values * hp_dtype_bytes((hp_dtype)c->p->dtype))
        return REFUSED("E-BOX", "buffer %d does not keep what %lld gradients lose", id,
                       (long long)c->t->code.values);
    if (c->used[id]) return REFUSED("E-LOST", "buffer %d keeps what two codes lose", id);
    c->used[id] = true;
    return HP_OK;
}

/* The range must be a whole bucket. */
static hp_status check_range(const checker *c) {
    const int64_t elems = c->r->buffer[HP_BUF_GRADS].bytes / hp_dtype_bytes((hp_dtype)c->p->dtype);
    HP_TRY(hp_check_bucket_task(&c->at));
    if (c->t->code.first <= elems && c->t->code.values <= elems - c->t->code.first) return HP_OK;
    return REFUSED("E-COUNT", "gradients %lld+%lld of %lld", (long long)c->t->code.first,
                   (long long)c->t->code.values, (long long)elems);
}

/* Checks a range of the gradients; a decoder adds up as many codes as exist. */
static hp_status check_gradients(const checker *c, int code, int values) {
    const hp_buffer *a = buffer_of(c, code), *b = buffer_of(c, values);
    if (b->kind != HP_BUF_GRADS) return REFUSED("E-BOX", "a code without a tensor is one of gradients");
    HP_TRY(check_range(c));
    const int64_t each = hp_codec_bytes(a->codec, c->t->code.values, 1);
    const bool several = c->t->op == HP_TASK_DECODE && info_of(a)->sum == HP_CODEC_GATHERED;
    if (several ? a->bytes == 0 || a->bytes % each : a->bytes != each)
        return REFUSED("E-COUNT", "a code of %lld bytes, %lld gradients make %lld", (long long)a->bytes,
                       (long long)c->t->code.values, (long long)each);
    return HP_OK;
}

static hp_status check_transcoding(const checker *c) {
    const int code = c->t->op == HP_TASK_DECODE, values = !code;
    if (!hp_buffer_is_code(buffer_of(c, code)) || hp_buffer_is_code(buffer_of(c, values)))
        return REFUSED("E-TYPE", "a codec works between values and a code");
    if (c->t->flags) return REFUSED("E-RANGE", "a codec has no flags");
    if (info_of(buffer_of(c, code))->sum == HP_CODEC_FACTORED)
        return REFUSED("E-TYPE", "buffer %d holds factors, not a code", c->r->operand[c->t->operand + code]);
    HP_TRY(buffer_of(c, code)->what < 0 ? check_gradients(c, code, values) : check_box(c, code, values));
    return check_residual(c, buffer_of(c, code));
}

/* --- factors --- */

static bool holds_factors(const checker *c, int32_t id, hp_codec codec, int64_t elems) {
    const hp_buffer *b = &c->r->buffer[id];
    return hp_buffer_is_code(b) && b->what < 0 && b->codec == codec &&
           b->bytes == elems * hp_dtype_bytes((hp_dtype)c->p->dtype);
}

static hp_status check_factors(const checker *c) {
    const hp_operands o = hp_operands_of(c->g, c->r, c->t);
    const hp_codec codec = c->r->buffer[o.p].codec;
    const int32_t grads = c->t->op == HP_TASK_PROJECT ? o.src : o.dst;
    const hp_buffer *kept = &c->r->buffer[o.residual];
    if (c->t->flags) return REFUSED("E-RANGE", "a codec has no flags");
    if (!hp_codec_exists(codec) || hp_codec_info_of(codec)->sum != HP_CODEC_FACTORED)
        return REFUSED("E-TYPE", "buffer %d holds no factors", o.p);
    if (c->t->op != HP_TASK_FACTOR && grads != HP_BUF_GRADS)
        return REFUSED("E-BOX", "factors are those of gradients");
    HP_TRY(check_range(c));
    const hp_factor_sizes n = hp_factor_sizes_of(c->g, c->r, hp_task_range(c->t), hp_codec_number(codec));
    if (!holds_factors(c, o.p, codec, n.p) || (o.q >= 0 && !holds_factors(c, o.q, codec, n.q)))
        return REFUSED("E-COUNT", "factors of other sizes than these gradients'");
    if (kept->kind != HP_BUF_CARRY || kept->dtype != c->p->dtype ||
        kept->bytes != (c->t->code.values + n.q) * hp_dtype_bytes((hp_dtype)c->p->dtype))
        return REFUSED("E-BOX", "buffer %d does not keep what %lld gradients lose", o.residual,
                       (long long)c->t->code.values);
    if (c->t->op != HP_TASK_PROJECT) return HP_OK; /* same as there: check/check_gradients.c */
    if (c->used[o.residual]) return REFUSED("E-LOST", "buffer %d keeps what two codes lose", o.residual);
    c->used[o.residual] = true;
    return HP_OK;
}

/* --- sums --- */

/* Does the task add up codes in place? */
static bool adds(const checker *c, const hp_buffer *b) {
    const hp_codec_sum sum = info_of(b)->sum;
    return c->t->op == HP_TASK_ALLREDUCE && c->t->n_operand == 1 &&
           (sum == HP_CODEC_ADDED || sum == HP_CODEC_FACTORED) &&
           hp_task_call(c->p, c->t).reduction == HP_REDUCE_SUM;
}

/* Does the task gather each member's code into a separate buffer? */
static bool gathers(const checker *c, const hp_buffer *b) {
    if (c->t->op != HP_TASK_ALL_GATHER || c->t->n_operand != 2 || info_of(b)->sum != HP_CODEC_GATHERED ||
        hp_task_call(c->p, c->t).n || c->r->operand[c->t->operand + 1] < 0)
        return false;
    const hp_buffer *own = buffer_of(c, 1);
    const int64_t members = hp_group_size(c->p, c->r->queue[c->t->queue].peer);
    return hp_buffer_is_code(own) && own->codec == b->codec && own->what < 0 &&
           own->bytes == b->bytes / members && b->bytes % members == 0;
}

static hp_status check_sum(const checker *c) {
    const hp_buffer *b = buffer_of(c, 0);
    const bool whole =
        !c->t->collective.first && c->t->collective.elems == b->bytes / hp_dtype_bytes((hp_dtype)b->dtype);
    if (whole && hp_buffer_is_code(b) && b->what < 0 && (adds(c, b) || gathers(c, b))) return HP_OK;
    return REFUSED("E-TYPE", "codes of gradients are not summed so");
}

/* --- the others --- */

static bool moves_code(const hp_task *t, const hp_buffer *b) {
    return hp_buffer_is_code(b) && b->what >= 0 && (t->op == HP_TASK_SEND || t->op == HP_TASK_RECV);
}

static bool is_codecs(const checker *c, int i) {
    return c->r->operand[c->t->operand + i] >= 0 &&
           (hp_buffer_is_code(buffer_of(c, i)) || buffer_of(c, i)->kind == HP_BUF_CARRY);
}

static bool touches_codes(const checker *c) {
    for (int i = 0; i < c->t->n_operand; i++)
        if (is_codecs(c, i)) return true;
    return false;
}

static hp_status check_task(const checker *c) {
    if (c->t->op == HP_TASK_ENCODE || c->t->op == HP_TASK_DECODE) return check_transcoding(c);
    if (hp_task_factors(c->t)) return check_factors(c);
    if (hp_task_is_collective(c->t)) return touches_codes(c) ? check_sum(c) : HP_OK;
    for (int i = 0; i < c->t->n_operand; i++) {
        if (is_codecs(c, i) && !moves_code(c->t, buffer_of(c, i)))
            return REFUSED("E-TYPE", "buffer %d is a codec's, which a %s does not take",
                           c->r->operand[c->t->operand + i], hp_task_infos[c->t->op].name);
    }
    return HP_OK;
}

static hp_status check_role(checker *c) {
    c->at.task = -1;
    for (int b = 0; b < c->r->n_buffer; b++) HP_TRY(check_buffer(c, b));
    for (c->at.task = 0; c->at.task < c->r->n_task; c->at.task++) {
        c->t = &c->r->task[c->at.task];
        HP_TRY(check_task(c));
    }
    return HP_OK;
}

hp_status hp_check_codes(const hp_program *p, const hp_graph *g, hp_error *err) {
    for (int role = 0; role < p->n_role; role++) {
        hp_arena *arena = hp_arena_new();
        checker c = {.at = {p, g, role, -1, err}, .p = p, .g = g, .r = &p->role[role]};
        c.used = HP_NEW(arena, bool, c.r->n_buffer);
        const hp_status s = check_role(&c);
        hp_arena_free(arena);
        HP_TRY(s);
    }
    return HP_OK;
}

const hp_task *hp_check_encoder(const hp_role *r, int32_t code) {
    for (int t = 0; t < r->n_task; t++)
        if ((r->task[t].op == HP_TASK_ENCODE || r->task[t].op == HP_TASK_PROJECT ||
             r->task[t].op == HP_TASK_FACTOR) &&
            r->operand[r->task[t].operand] == code)
            return &r->task[t];
    return NULL;
}
