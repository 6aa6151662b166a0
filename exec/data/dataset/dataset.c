/* dataset.c - opens data by name: finds its kind and checks that it fits the network. */
#include "exec/data/dataset/dataset_kind.h"
#include "exec/base/half.h"
#include "base/alloc.h"
#include "base/units.h"

#include <errno.h>
#include <math.h>
#include <string.h>

/* Tried in this order: the first kind that recognises the name opens it. */
static const hp_dataset_kind *const kinds[] = {&hp_dataset_synthetic, &hp_dataset_text,   &hp_dataset_idx,
                                               &hp_dataset_masks,     &hp_dataset_folder, &hp_dataset_patched,
                                               &hp_dataset_file};

hp_data_options hp_data_options_default(void) {
    hp_data_options o = {.label_h = 1, .label_w = 1};
    for (int c = 0; c < HP_DATA_CHANNELS; c++) o.mean[c] = o.std[c] = 0.5;
    return o;
}

hp_status hp_data_parse_channels(const char *text, const char *what, double value[HP_DATA_CHANNELS],
                                 hp_error *err) {
    char copy[16 * HP_DATA_CHANNELS];
    if (strlen(text) >= sizeof copy)
        return hp_fail(err, HP_EUSAGE, "%s: more than %zu characters; give one number per channel", what,
                       sizeof copy);
    memcpy(copy, text, strlen(text) + 1);
    int n = 0;
    for (char *word = copy, *next; word; word = next) {
        next = strchr(word, ',');
        if (next) *next++ = '\0';
        if (n == HP_DATA_CHANNELS)
            return hp_fail(err, HP_EUSAGE, "%s: more than %d channels in '%s'", what, (int)HP_DATA_CHANNELS,
                           text);
        HP_TRY(hp_parse_double(word, what, -1e6, 1e6, &value[n++], err));
    }
    /* the last value applies to the remaining channels */
    for (int c = n; c < HP_DATA_CHANNELS; c++) value[c] = value[n - 1];
    return HP_OK;
}

hp_status hp_data_parse_bands(const char *text, hp_data_options *o, hp_error *err) {
    o->n_band = 0;
    for (const char *at = text; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        char word[16];
        int64_t band = 0;
        const size_t n = strcspn(at, ",");
        if (o->n_band == HP_MAX_BANDS)
            return hp_fail(err, HP_EUSAGE, "--bands: more than %d bands", (int)HP_MAX_BANDS);
        if (n >= sizeof word)
            return hp_fail(err, HP_EUSAGE, "--bands: '%.20s' is no number of a band; as in --bands 4,3,2",
                           at);
        memcpy(word, at, n);
        word[n] = '\0';
        HP_TRY(hp_parse_int(word, "--bands", 1, 65535, &band, err));
        o->band[o->n_band++] = (int32_t)band;
    }
    return HP_OK;
}

hp_status hp_data_options_check(const hp_data_options *o, hp_error *err) {
    HP_ASSERT(o->name && o->image_h > 0 && o->image_w > 0 && o->image_c > 0 && o->classes > 0);
    HP_ASSERT(o->label_h > 0 && o->label_w > 0);
    if (o->image_c > HP_DATA_CHANNELS)
        return hp_fail(err, HP_EUSAGE, "the network takes %d channels; of an image at most %d are read",
                       o->image_c, (int)HP_DATA_CHANNELS);
    if (o->channels != 0 && o->channels != 1 && o->channels != 3)
        return hp_fail(err, HP_EUSAGE, "--channels %d: give 1 (grey) or 3 (colour)", o->channels);
    if (o->resize < 0)
        return hp_fail(err, HP_EUSAGE, "--resize %d: give a positive number of pixels", o->resize);
    if (o->resize && (o->resize < o->image_h || o->resize < o->image_w))
        return hp_fail(err, HP_EUSAGE,
                       "--resize %d is smaller than the plan's image, %d x %d; give --resize %d", o->resize,
                       o->image_h, o->image_w, o->image_h > o->image_w ? o->image_h : o->image_w);
    for (int c = 0; c < o->image_c; c++)
        if (!(fabs(o->std[c]) > 0.0) || !isfinite(o->std[c]) || !isfinite(o->mean[c]))
            return hp_fail(err, HP_EUSAGE, "--mean %g --std %g: give finite numbers and a std that is not 0",
                           o->mean[c], o->std[c]);
    return HP_OK;
}

static const hp_dataset_kind *find_kind(const char *name) {
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i]->accepts(name)) return kinds[i];
    return NULL;
}

bool hp_data_name_has_images(const char *name) {
    const hp_dataset_kind *kind = find_kind(name);
    return kind && kind->images;
}

/* Data with a class per pixel needs a network that predicts one per pixel; data with a class per image needs
 * one that does not. */
static hp_status check_labels(const hp_dataset *d, hp_error *err) {
    const hp_data_options *o = &d->o;
    const bool text = d->kind == &hp_dataset_text;
    if (o->ids && !text && d->kind != &hp_dataset_synthetic)
        return hp_fail(err, HP_EDATA,
                       "--data %s are images, the network reads ids: give --data text:FILE, or synthetic",
                       o->name);
    if (text) return HP_OK; /* it reports its own requirements */
    if (hp_dataset_maps(d) ? d->kind->map != NULL : d->kind->label != NULL) return HP_OK;
    if (d->kind->label)
        return hp_fail(
            err, HP_EDATA,
            "--data %s has one class per image, the network gives a map of %d x %d; give a folder with "
            "{train,test}/{images,masks}, or simulate a classifier (--net resnet18)",
            o->name, o->label_h, o->label_w);
    return hp_fail(
        err, HP_EDATA,
        "--data %s holds images and masks, the network gives one class per image; give class folders "
        "{train,test}/CLASS/*, or simulate with --net unet",
        o->name);
}

static void fill_tables(hp_dataset *d) {
    const hp_data_options *o = &d->o;
    d->f32 = hp_arena_alloc(d->arena, sizeof *d->f32 * (size_t)o->image_c);
    d->bf16 = hp_arena_alloc(d->arena, sizeof *d->bf16 * (size_t)o->image_c);
    d->f16 = hp_arena_alloc(d->arena, sizeof *d->f16 * (size_t)o->image_c);
    for (int c = 0; c < o->image_c; c++)
        for (int v = 0; v < 256; v++) {
            const float x = o->ids ? (float)v : (float)((v / 255.0 - o->mean[c]) / o->std[c]);
            d->f32[c][v] = x;
            d->bf16[c][v] = to_bf16(x);
            d->f16[c][v] = to_f16(x);
        }
}

hp_status hp_dataset_open(const hp_data_options *o, hp_dataset **out, hp_error *err) {
    HP_TRY(hp_data_options_check(o, err));
    const hp_dataset_kind *kind = find_kind(o->name);
    if (!kind)
        return hp_fail(err, HP_EDATA,
                       "--data %s: %s; give synthetic, fashion-mnist, an existing folder or file", o->name,
                       strerror(ENOENT));
    if (o->n_band && !kind->images)
        return hp_fail(err, HP_EUSAGE, "--bands: --data %s are no image files; leave --bands out", o->name);
    hp_arena *arena = hp_arena_new();
    hp_dataset *d = HP_NEW(arena, hp_dataset, 1);
    d->kind = kind;
    d->o = *o;
    d->o.name = hp_arena_strdup(arena, o->name);
    d->arena = arena;
    d->decoder = hp_decoder_new(o->decoders);
    d->readers.o.decoder = d->masks.o.decoder = d->decoder;
    d->readers.o.channels = o->image_c;
    d->readers.o.n_band = o->n_band;
    memcpy(d->readers.o.band, o->band, sizeof o->band);
    fill_tables(d);
    hp_status s = check_labels(d, err);
    if (s == HP_OK) s = kind->open(d, err);
    d->readers.o.pulse = d->masks.o.pulse = o->pulse;
    if (s != HP_OK) {
        hp_dataset_close(d);
        return s;
    }
    *out = d;
    return HP_OK;
}

void hp_dataset_close(hp_dataset *d) {
    if (!d) return;
    hp_reader_pool_free(&d->readers);
    hp_reader_pool_free(&d->masks);
    hp_decoder_free(d->decoder);
    hp_image_free(&d->drawn);
    hp_image_free(&d->resized);
    if (d->of) {
        free(d);
        return;
    }
    d->kind->close(d);
    hp_arena_free(d->arena);
}

static hp_dataset *another(hp_dataset *d) {
    hp_dataset *a = hp_alloc(sizeof *a);
    *a = *d;
    a->of = d;
    a->readers = (hp_reader_pool){.o = d->readers.o, .sharers = d->readers.sharers};
    a->masks = (hp_reader_pool){.o = d->masks.o, .sharers = d->masks.sharers};
    a->decoder = hp_decoder_new(d->o.decoders);
    a->readers.o.decoder = a->masks.o.decoder = a->decoder;
    a->drawn = a->resized = (hp_image){0};
    return a;
}

int32_t hp_dataset_handles(hp_dataset *d, int32_t n, hp_dataset **handle) {
    if (d->kind->one_file) n = 1;
    d->readers.sharers = d->masks.sharers = n;
    handle[0] = d;
    for (int32_t i = 1; i < n; i++) handle[i] = another(d);
    return n;
}

int64_t hp_dataset_left_out(const hp_dataset *d, const char **example) {
    *example = d->other;
    return d->left_out;
}

bool hp_dataset_is_text(const hp_dataset *d) {
    return d->kind == &hp_dataset_text;
}

int64_t hp_dataset_count(const hp_dataset *d) {
    return d->count;
}
