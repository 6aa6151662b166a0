/* image_layout.c - selects the bands of a file to read: by --bands, else by the network's channels. Ambiguous
 * cases are refused. */
#include "exec/data/image/reader_kind.h"

#include <stdio.h>
#include <string.h>

static void pick_first(hp_reader *r, int32_t n) {
    r->kept.c = n;
    for (int32_t i = 0; i < n; i++) r->pick[i] = i;
}

/* "1,2,3" up to n, which is small. */
static const char *first_bands(int32_t n, char text[64]) {
    size_t at = 0;
    text[0] = '\0';
    for (int32_t i = 1; i <= n && at < 40; i++)
        at += (size_t)snprintf(text + at, 64 - at, "%s%d", i > 1 ? "," : "", i);
    if (n > 14) snprintf(text + at, 64 - at, ",..");
    return text;
}

static hp_status pick_named(hp_reader *r, const hp_stored_image *s, hp_error *err) {
    const hp_reader_options *o = &r->o;
    if (o->channels && o->n_band != o->channels)
        return hp_fail(err, HP_EDATA,
                       "%s has %d bands, --bands names %d of them and the network takes %d channels: name %d",
                       r->path, s->bands, o->n_band, o->channels, o->channels);
    for (int32_t i = 0; i < o->n_band; i++) {
        if (o->band[i] < 1 || o->band[i] > s->bands)
            return hp_fail(err, HP_EDATA,
                           "%s has %d band%s, --bands asks for band %d; name bands from 1 to %d", r->path,
                           s->bands, s->bands == 1 ? "" : "s", o->band[i], s->bands);
        r->pick[i] = o->band[i] - 1;
    }
    r->kept.c = o->n_band;
    return HP_OK;
}

static hp_status fail_many(const hp_reader *r, const hp_stored_image *s, hp_error *err) {
    char text[64];
    return hp_fail(err, HP_EDATA,
                   "%s has %d bands, the network takes %d channels; say which it is to see, as in --bands %s",
                   r->path, s->bands, r->o.channels, first_bands(r->o.channels, text));
}

static hp_status pick(hp_reader *r, const hp_stored_image *s, hp_error *err) {
    const int32_t takes = r->o.channels;
    if (r->o.n_band) return pick_named(r, s, err);
    if (s->bands <= s->colour || s->bands == takes || (!takes && s->bands > s->colour + 1)) {
        if (s->bands > HP_MAX_BANDS)
            return hp_fail(err, HP_EDATA, "%s has %d bands; more than %d are not read: name some by --bands",
                           r->path, s->bands, (int)HP_MAX_BANDS);
        pick_first(r, s->bands);
        return HP_OK;
    }
    if (s->bands > s->colour + 1) return fail_many(r, s, err);
    pick_first(r, s->colour);
    if (!(s->said & HP_SAID_ALPHA)) r->said |= HP_SAID_BAND;
    return HP_OK;
}

hp_status hp_reader_stores(hp_reader *r, const hp_stored_image *s, hp_error *err) {
    r->bands = s->bands;
    r->said = s->said;
    r->position = s->position;
    r->kept.type = s->type;
    HP_TRY(pick(r, s, err));
    for (int32_t i = 0; i < r->kept.c; i++)
        if (r->pick[i] >= s->colour) r->said &= ~(uint32_t)HP_SAID_ALPHA;
    return hp_image_sizes(&r->kept, s->h, s->w, r->kept.c, r->path, err);
}

bool hp_reader_is_still(hp_reader *r, const hp_pixels *was, int32_t bands) {
    hp_image *k = &r->kept;
    if (k->h == was->h && k->w == was->w && k->c == was->c && k->type == was->type && r->bands == bands)
        return true;
    k->h = was->h, k->w = was->w, k->c = was->c, k->type = was->type;
    r->bands = bands;
    return false;
}

#define PICK(type)                                                                                           \
    for (size_t i = 0; i < n; i++)                                                                           \
        for (size_t k = 0; k < c; k++) ((type *)to)[i * c + k] = ((const type *)pixels)[i * all + pick[k]]

void hp_reader_pick(const hp_reader *r, const void *pixels, size_t n, void *to) {
    const size_t c = (size_t)r->kept.c, all = (size_t)r->bands;
    const int32_t *pick = r->pick;
    bool same = c == all;
    for (size_t k = 0; k < c && same; k++) same = pick[k] == (int32_t)k;
    if (same)
        memcpy(to, pixels, n * hp_pixel_bytes(r->kept.c, r->kept.type));
    else if (r->kept.type == HP_SAMPLE_U8)
        PICK(uint8_t);
    else if (r->kept.type == HP_SAMPLE_U16)
        PICK(uint16_t);
    else
        PICK(float);
}
