/* reader_decoder.c - a reader that delegates its file to a decoder (decoder.h). Sizes and levels in answers
 * are checked like those of a file; pixels can be any bytes. */
#include "exec/data/image/decoder_wire.h"
#include "exec/data/image/reader_kind.h"
#include "base/alloc.h"

#include <string.h>

typedef struct remote {
    int32_t id; /* -1: closed there, because all pixels are here */
    int64_t generation;
} remote;

/* Maximum number of levels of a slide; limits level=N. */
enum { MOST_LEVELS = 31 };

static hp_status fail_nonsense(const hp_reader *r, hp_error *err) {
    return hp_fail(err, HP_EDATA, "%s: its decoder answers nonsense; replace the file", r->path);
}

static hp_status fail_memory(const hp_reader *r, size_t bytes, hp_error *err) {
    return hp_fail(err, HP_EDATA, "%s: no memory for %zu bytes of pixels; scale the image down", r->path,
                   bytes);
}

static hp_status ask(hp_reader *r, hp_decoder_request *q, hp_decoder_answer *a, hp_error *err) {
    HP_TRY(hp_decoder_ask(r->o.decoder, q, r->path, &r->o.pulse, a, err));
    if (a->decoder_bytes < 0 || a->decoder_bytes > hp_decoder_limits_default().memory_bytes)
        return fail_nonsense(r, err);
    r->decoder_bytes = (size_t)a->decoder_bytes;
    return HP_OK;
}

static hp_status open_there(hp_reader *r, hp_decoder_answer *a, hp_error *err) {
    remote *m = r->self;
    hp_decoder_request q = {.verb = HP_DECODER_OPEN,
                            .mask = r->o.mask,
                            .slide = r->o.slide,
                            .level = r->o.level,
                            .channels = r->o.channels,
                            .n_band = r->o.n_band};
    memcpy(q.band, r->o.band, sizeof q.band);
    if (strlen(r->path) >= sizeof q.path)
        return hp_fail(err, HP_EDATA, "%s: a path of %zu bytes or more; give a shorter one", r->path,
                       sizeof q.path);
    memcpy(q.path, r->path, strlen(r->path) + 1);
    if (!hp_decoder_room(r->o.decoder, HP_DECODER_SMALL)) return fail_memory(r, HP_DECODER_SMALL, err);
    HP_TRY(ask(r, &q, a, err));
    m->id = a->id;
    m->generation = hp_decoder_generation(r->o.decoder);
    return HP_OK;
}

/* Keeps the whole image as the window, so no further request is needed. */
static hp_status keep_small(hp_reader *r, hp_error *err) {
    const int64_t pixel = (int64_t)hp_pixel_bytes(r->kept.c, r->kept.type),
                  bytes = (int64_t)r->kept.h * r->kept.w * pixel;
    if (bytes > HP_DECODER_SMALL) return fail_nonsense(r, err);
    HP_TRY(hp_image_room(&r->kept, NULL, r->path, err));
    memcpy(r->kept.px, hp_decoder_room(r->o.decoder, HP_DECODER_SMALL), (size_t)bytes);
    return HP_OK;
}

static hp_status open_remote(hp_reader *r, hp_error *err) {
    hp_decoder_answer a;
    r->self = hp_zeroed(1, sizeof(remote));
    ((remote *)r->self)->generation = -2;
    HP_TRY(open_there(r, &a, err));
    if (a.c < 1 || a.c > HP_MAX_BANDS || a.bands < 1 || a.type < 0 || a.type >= HP_SAMPLES)
        return fail_nonsense(r, err);
    r->forward = a.forward;
    r->bands = a.bands;
    r->said = a.said & HP_SAID_ALL;
    r->kept.type = (hp_pixel_type)a.type;
    HP_TRY(hp_image_sizes(&r->kept, a.h, a.w, a.c, r->path, err));
    return a.id < 0 ? keep_small(r, err) : HP_OK;
}

/* Another file has killed the decoder since; the new one opens this file again. */
static hp_status reopen(hp_reader *r, hp_error *err) {
    hp_decoder_answer a;
    if (((remote *)r->self)->generation == hp_decoder_generation(r->o.decoder)) return HP_OK;
    HP_TRY(open_there(r, &a, err));
    const hp_image *k = &r->kept;
    if (a.h == k->h && a.w == k->w && a.c == k->c && a.type == (int32_t)k->type) return HP_OK;
    return hp_fail(err, HP_EDATA, "%s: changed while it was read; leave the data alone during a run",
                   r->path);
}

static int32_t least(int32_t a, int32_t b) {
    return a < b ? a : b;
}

static hp_status rows(hp_reader *r, const hp_crop *part, uint8_t *px, hp_error *err) {
    const size_t row = (size_t)hp_crop_columns(part) * hp_pixel_bytes(r->kept.c, r->kept.type);
    const int32_t most = row < HP_DECODER_CHUNK ? (int32_t)(HP_DECODER_CHUNK / row) : 1,
                  at_once = least(most, hp_crop_rows(part));
    hp_decoder_answer a;
    HP_TRY(reopen(r, err));
    if (((remote *)r->self)->id < 0) return fail_nonsense(r, err);
    const uint8_t *from = hp_decoder_room(r->o.decoder, (size_t)at_once * row);
    if (!from) return fail_memory(r, (size_t)at_once * row, err);
    for (int32_t y = part->y0; y < part->y1; y += at_once) {
        const hp_crop some = {y, part->x0, least(y + at_once, part->y1), part->x1};
        hp_decoder_request q = {.verb = HP_DECODER_ROWS, .id = ((remote *)r->self)->id, .part = some};
        HP_TRY(ask(r, &q, &a, err));
        memcpy(px + (size_t)(y - part->y0) * row, from, (size_t)hp_crop_rows(&some) * row);
    }
    return HP_OK;
}

/* If the decoder cannot be asked: 0, and the error comes with the pixels. */
static int32_t level(const hp_reader *r, double shrink) {
    const remote *m = r->self;
    hp_decoder_answer a;
    hp_decoder_request q = {.verb = HP_DECODER_LEVEL, .id = m->id, .shrink = shrink};
    if (m->id < 0 || m->generation != hp_decoder_generation(r->o.decoder) ||
        hp_decoder_ask(r->o.decoder, &q, r->path, &r->o.pulse, &a, NULL) != HP_OK)
        return 0;
    return a.level >= 0 && a.level <= MOST_LEVELS ? a.level : 0;
}

static void close_remote(hp_reader *r) {
    remote *m = r->self;
    if (!m) return;
    hp_decoder_request q = {.verb = HP_DECODER_CLOSE, .id = m->id};
    if (m->id >= 0 && m->generation == hp_decoder_generation(r->o.decoder))
        hp_decoder_ask(r->o.decoder, &q, r->path, &r->o.pulse, NULL, NULL);
    free(m);
}

const hp_reader_kind hp_reader_decoded = {
    .open = open_remote, .rows = rows, .level = level, .close = close_remote};
