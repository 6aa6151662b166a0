/* turned.c - turns images upright that their file marks as turned or mirrored (TIFF 6.0, Exif 2.3:
 * Orientation). The result starts at another corner than the file, so the stored image is held whole. */
#include "exec/data/image/reader_kind.h"

#include <string.h>

/* Maps row y and column x of the upright image to the stored one: orientations 5 to 8 swap the axes, then
 * each may be reversed. */
typedef struct turn {
    bool exchanged, from_bottom, from_right;
} turn;

static const turn TURNS[9] = {
    [1] = {false, false, false}, [2] = {false, false, true}, [3] = {false, true, true},
    [4] = {false, true, false},  [5] = {true, false, false}, [6] = {true, true, false},
    [7] = {true, true, true},    [8] = {true, false, true},
};

static size_t stored_at(const turn *t, const hp_pixels *p, int32_t y, int32_t x) {
    int32_t row = t->exchanged ? x : y, column = t->exchanged ? y : x;
    if (t->from_bottom) row = p->h - 1 - row;
    if (t->from_right) column = p->w - 1 - column;
    return (size_t)row * (size_t)p->w + (size_t)column;
}

static hp_status open_turned(hp_reader *r, hp_error *err) {
    (void)r;
    (void)err;
    return HP_OK;
}

static hp_status rows(hp_reader *r, const hp_crop *part, uint8_t *px, hp_error *err) {
    hp_reader *in = r->self;
    const turn *t = &TURNS[r->position];
    hp_pixels all;
    HP_TRY(hp_reader_window(in, NULL, &all, err));
    const size_t bytes = hp_pixel_bytes(all.c, all.type);
    r->decoder_bytes = hp_reader_bytes(in);
    for (int32_t y = part->y0; y < part->y1; y++)
        for (int32_t x = part->x0; x < part->x1; x++, px += bytes)
            memcpy(px, all.px + stored_at(t, &all, y, x) * bytes, bytes);
    return HP_OK;
}

static void close_turned(hp_reader *r) {
    hp_reader_close(r->self);
}

static const hp_reader_kind turned = {.open = open_turned, .rows = rows, .close = close_turned};

hp_reader *hp_reader_upright(hp_reader *in) {
    if (in->position < 2 || in->position > 8) return in;
    hp_reader *r = calloc(1, sizeof *r);
    HP_ASSERT(r);
    r->kind = &turned;
    r->path = strdup(in->path);
    HP_ASSERT(r->path);
    r->o = in->o;
    const hp_image *i = &in->kept;
    const bool exchanged = TURNS[in->position].exchanged;
    r->kept =
        (hp_image){.h = exchanged ? i->w : i->h, .w = exchanged ? i->h : i->w, .c = i->c, .type = i->type};
    r->bands = in->bands;
    r->position = in->position; /* determines the size if the file changes */
    r->said = in->said | HP_SAID_TURNED;
    r->self = in;
    return r;
}
