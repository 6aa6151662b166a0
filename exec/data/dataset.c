/* dataset.c - opening data by name, and the way from 8-bit pixels to the network's input. */
#include "exec/data/dataset_kind.h"
#include "plan/base/units.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

/* The first that owns the name opens it. */
static const hp_dataset_kind *const kinds[] = {&hp_dataset_synthetic, &hp_dataset_idx, &hp_dataset_folder,
                                               &hp_dataset_file};

bool hp_is_dir(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

bool hp_is_file(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

hp_data_options hp_data_options_default(void) {
    hp_data_options o = {0};
    for (int c = 0; c < HP_DATA_CHANNELS; c++) o.mean[c] = o.std[c] = 0.5;
    return o;
}

hp_status hp_data_parse_channels(const char *text, const char *what, double value[HP_DATA_CHANNELS],
                                 hp_error *err) {
    char copy[256];
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
    for (int c = n; c < HP_DATA_CHANNELS; c++) value[c] = value[n - 1]; /* the last one stands for the rest */
    return HP_OK;
}

static hp_status check_options(const hp_data_options *o, hp_error *err) {
    HP_ASSERT(o->name && o->image_h > 0 && o->image_w > 0 && o->image_c > 0 && o->classes > 0);
    if (o->image_c > HP_DATA_CHANNELS)
        return hp_fail(err, HP_EUSAGE, "the network takes %d channels; images have at most %d", o->image_c,
                       (int)HP_DATA_CHANNELS);
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
        if (kinds[i]->owns(name)) return kinds[i];
    return NULL;
}

hp_status hp_dataset_open(const hp_data_options *o, hp_dataset **out, hp_error *err) {
    HP_TRY(check_options(o, err));
    const hp_dataset_kind *kind = find_kind(o->name);
    if (!kind)
        return hp_fail(err, HP_EDATA,
                       "--data %s: %s; give synthetic, fashion-mnist, an existing folder or file", o->name,
                       strerror(ENOENT));
    hp_arena *arena = hp_arena_new();
    hp_dataset *d = HP_NEW(arena, hp_dataset, 1);
    d->kind = kind;
    d->o = *o;
    d->o.name = hp_arena_strdup(arena, o->name);
    d->arena = arena;
    for (int c = 0; c < o->image_c; c++)
        for (int v = 0; v < 256; v++) d->table[c][v] = (float)((v / 255.0 - o->mean[c]) / o->std[c]);
    const hp_status s = kind->open(d, err);
    if (s != HP_OK) {
        hp_dataset_close(d);
        return s;
    }
    *out = d;
    return HP_OK;
}

void hp_dataset_close(hp_dataset *d) {
    if (!d) return;
    d->kind->close(d);
    hp_image_free(&d->decoded);
    hp_image_free(&d->resized);
    hp_arena_free(d->arena);
}

int64_t hp_dataset_count(const hp_dataset *d) {
    return d->count;
}

/* --resize S as torchvision's Resize(S): the shorter side becomes S, the longer keeps the ratio, rounded
 * down. */
static hp_status resize(hp_dataset *d, hp_pixels *view, hp_error *err) {
    const hp_data_options *o = &d->o;
    int64_t full_h = o->image_h, full_w = o->image_w;
    if (o->resize) {
        full_h = view->h <= view->w ? o->resize : (int64_t)o->resize * view->h / view->w;
        full_w = view->w <= view->h ? o->resize : (int64_t)o->resize * view->w / view->h;
    }
    if (full_h > INT32_MAX || full_w > INT32_MAX)
        return hp_fail(err, HP_EDATA, "--resize %d of a %d x %d image is too large", o->resize, view->h,
                       view->w);
    if (full_h == o->image_h && full_w == o->image_w && view->h == o->image_h && view->w == o->image_w)
        return HP_OK;
    HP_TRY(hp_image_resize(view, (int32_t)full_h, (int32_t)full_w, o->image_h, o->image_w, &d->resized, err));
    *view = (hp_pixels){o->image_h, o->image_w, d->resized.c, d->resized.px};
    return HP_OK;
}

/* ITU-R 601 luma in 16-bit fixed point, as Pillow converts to "L". */
static uint8_t luma(const uint8_t *px) {
    return (uint8_t)((px[0] * 19595u + px[1] * 38470u + px[2] * 7471u + 0x8000u) >> 16);
}

static void spread(const hp_dataset *d, const hp_pixels *v, float *x) {
    const size_t n = (size_t)v->h * (size_t)v->w;
    const bool grey = v->c == 3;
    for (size_t i = 0; i < n; i++) {
        const uint8_t value = grey ? luma(v->px + 3 * i) : v->px[i];
        for (int c = 0; c < d->o.image_c; c++) *x++ = d->table[c][value];
    }
}

static void map(const hp_dataset *d, const hp_pixels *v, float *x) {
    const size_t n = (size_t)v->h * (size_t)v->w, nc = (size_t)v->c;
    for (size_t i = 0; i < n; i++)
        for (size_t c = 0; c < nc; c++) x[i * nc + c] = d->table[c][v->px[i * nc + c]];
}

static hp_status read_pixels(hp_dataset *d, int64_t index, float *x, hp_error *err) {
    hp_pixels view;
    HP_TRY(d->kind->pixels(d, index, &view, err));
    HP_TRY(resize(d, &view, err));
    const int32_t c = d->o.image_c;
    if (view.c == 1 || (view.c == 3 && (c == 1 || d->o.channels == 1))) {
        spread(d, &view, x);
    } else if (view.c == c) {
        map(d, &view, x);
    } else {
        return hp_fail(err, HP_EDATA,
                       "--data %s: sample %lld has %d channels, the network takes %d; give --channels 1",
                       d->o.name, (long long)index, view.c, c);
    }
    return HP_OK;
}

hp_status hp_dataset_read(hp_dataset *d, int64_t index, float *x, int32_t *label, hp_error *err) {
    HP_ASSERT(index >= 0 && index < d->count);
    if (label) *label = d->kind->label(d, index);
    return x ? read_pixels(d, index, x, err) : HP_OK;
}
