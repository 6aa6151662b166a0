/* check_buffers.c - boxes of buffers lie within their tensors, and their element counts match the bytes. */
#include "plan/check/check_inside.h"

typedef struct checker {
    const hp_program *p;
    const hp_graph *g;
    int role;
    hp_error *err;
} checker;

#define REFUSE(fmt, ...) return hp_fail(c->err, HP_EPLAN, "E-BOX: rank %d: " fmt, c->role, __VA_ARGS__)

/* Requires 0 <= lo <= hi <= the tensor's extent, also on the axes of an empty box. */
static bool box_in_tensor(const checker *c, const hp_box *b, int tensor) {
    const hp_box whole = hp_box_whole(c->g, tensor, c->p->micro_batch);
    for (int a = 0; a < HP_AXES; a++)
        if (b->lo[a] < 0 || b->hi[a] < b->lo[a] || b->hi[a] > whole.hi[a]) return false;
    return true;
}

/* Uses floating point: boxes from untrusted files may overflow 63 bits. */
static double box_size(const hp_box *b) {
    double elems = 1;
    for (int a = 0; a < HP_AXES; a++) elems *= hp_box_len(b, a);
    return elems;
}

/* Do `bytes` hold the box exactly? */
static bool box_fills(const hp_box *b, int64_t bytes, int64_t element) {
    return box_size(b) * (double)element < 0x1p60 && hp_box_elems(b) * element == bytes;
}

static hp_status check_tensor_buffer(const checker *c, int id, const hp_buffer *b) {
    if (b->what == -1 && hp_box_empty(&b->box)) return HP_OK; /* buffers of messages without a tensor */
    if (b->what < 0 || b->what >= c->g->n_tensor ||
        b->dtype != hp_tensor_dtype(&c->g->tensor[b->what], (hp_dtype)c->p->dtype))
        REFUSE("buffer %d holds no tensor of this network", id);
    if (!box_in_tensor(c, &b->box, b->what))
        REFUSE("the box of buffer %d lies outside tensor %d", id, b->what);
    if (!box_fills(&b->box, b->bytes, hp_dtype_bytes((hp_dtype)b->dtype)))
        REFUSE("buffer %d has %lld bytes, its box another size", id, (long long)b->bytes);
    return HP_OK;
}

/* check/check_codes.c checks type and codec. */
static hp_status check_code_buffer(const checker *c, int id, const hp_buffer *b) {
    if (b->what == -1 || !hp_codec_exists(b->codec) || !hp_codec_info_of(b->codec)->messages) return HP_OK;
    if (b->what < 0 || b->what >= c->g->n_tensor || !box_in_tensor(c, &b->box, b->what))
        REFUSE("the box of code %d lies outside tensor %d", id, b->what);
    if (box_size(&b->box) > 0x1p48 || b->bytes != hp_codec_box_bytes(b->codec, &b->box))
        REFUSE("buffer %d has %lld bytes, the code of its box another size", id, (long long)b->bytes);
    return HP_OK;
}

static hp_status check_save_buffer(const checker *c, int id, const hp_buffer *b) {
    if (b->what < 1 || b->what >= c->g->n_layer || !box_in_tensor(c, &b->box, c->g->layer[b->what].out))
        REFUSE("buffer %d: the box of what a layer saves lies outside its output", id);
    return HP_OK;
}

static hp_status check_label_buffer(const checker *c, int id, const hp_buffer *b) {
    hp_box pixels = b->box;
    pixels.lo[HP_AXIS_C] = 0;
    pixels.hi[HP_AXIS_C] = 1;
    if (b->dtype != HP_I32 || !box_in_tensor(c, &pixels, c->g->layer[c->g->n_layer - 1].out) ||
        !box_fills(&pixels, b->bytes, 4))
        REFUSE("buffer %d does not hold the labels of its box", id);
    return HP_OK;
}

static hp_status check_sums_buffer(const checker *c, int id, const hp_buffer *b) {
    if (b->dtype != HP_F64 || b->bytes % 16) REFUSE("buffer %d holds no pairs of float64 sums", id);
    return HP_OK;
}

typedef hp_status buffer_rule(const checker *c, int id, const hp_buffer *b);
static buffer_rule *const buffer_rules[HP_BUF_KINDS] = {
    [HP_BUF_TENSOR] = check_tensor_buffer,  [HP_BUF_GRADIENT] = check_tensor_buffer,
    [HP_BUF_SAVE] = check_save_buffer,      [HP_BUF_LABELS] = check_label_buffer,
    [HP_BUF_MESSAGE] = check_tensor_buffer, [HP_BUF_SUMS] = check_sums_buffer,
    [HP_BUF_CODE] = check_code_buffer,
};

hp_status hp_check_buffers(const hp_program *p, const hp_graph *g, hp_error *err) {
    for (int role = 0; role < p->n_role; role++) {
        const checker c = {p, g, role, err};
        for (int i = HP_BUF_FIXED; i < p->role[role].n_buffer; i++) {
            const hp_buffer *b = &p->role[role].buffer[i];
            if (buffer_rules[b->kind]) HP_TRY(buffer_rules[b->kind](&c, i, b));
        }
    }
    return HP_OK;
}
