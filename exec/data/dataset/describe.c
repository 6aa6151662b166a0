/* describe.c - reports what happens to images beyond what was asked for: nothing is lost, scaled or
 * squeezed silently. */
#include "exec/data/dataset/dataset_kind.h"

#include "base/text.h"

#include <math.h>

static const char *after(hp_text t) {
    return *t.out ? "; " : "";
}

typedef struct said_row {
    uint32_t bit;
    const char *words;
} said_row;

static const said_row ROWS[] = {
    {HP_SAID_ALPHA, "alpha is left out"},
    {HP_SAID_MULTIPLIED, "colours stay multiplied by alpha, as stored (associated alpha)"},
    {HP_SAID_BAND, "the last band is left out (--bands reads it)"},
    {HP_SAID_PROFILE, "its colour profile is not applied"},
    {HP_SAID_TURNED, "turned as its orientation says"},
    {HP_SAID_PAGES, "its first page alone is read"},
    {HP_SAID_SCALED, "integers divided by the largest of their type"},
    {HP_SAID_CONVERTED, "colours converted to RGB of 8 bits"},
    {HP_SAID_ROUNDED, "samples rounded to 32-bit floats"},
};

static void say_samples(hp_text t, const hp_dataset_seen *seen) {
    const uint32_t said = seen->said;
    if (seen->type == HP_SAMPLE_U16)
        hp_text_add(t, "%s16-bit samples, %s", after(t),
                    seen->as_bytes ? "rounded to 8 bits" : "read as x / 65535");
    if (seen->type == HP_SAMPLE_F32 && !(said & HP_SAID_SCALED))
        hp_text_add(t, "%sfloat samples, read as they are (--mean, --std)", after(t));
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++)
        if (said & ROWS[i].bit) hp_text_add(t, "%s%s", after(t), ROWS[i].words);
}

/* Reports stretching: a side of the network's image differs, by more than rounding to whole pixels, from what
 * the other side and the file's ratio give. */
static void say_size(hp_text t, const hp_data_options *o, int32_t h, int32_t width) {
    const double out_h = o->image_h, out_w = o->image_w;
    if (o->resize || (h == o->image_h && width == o->image_w)) return;
    if (fabs(out_w * h / width - out_h) > 1 && fabs(out_h * width / h - out_w) > 1)
        hp_text_add(t, "%sstretched from %dx%d to %dx%d (width x height); --resize S keeps its shape",
                    after(t), width, h, o->image_w, o->image_h);
    else
        hp_text_add(t, "%sscaled from %dx%d to the plan's %dx%d (width x height)%s", after(t), width, h,
                    o->image_w, o->image_h,
                    h > 4 * o->image_h
                        ? "; to see it at its own size plan with its --image, or cut it by --data patches:"
                        : "");
}

void hp_dataset_notice(hp_dataset *d, int64_t index, hp_dtype dtype) {
    hp_dataset_seen *seen = &(d->of ? d->of : d)->seen;
    int nothing = HP_SEEN_NOTHING;
    hp_reader *r;
    hp_pixels size;
    hp_error ignored;
    if (!d->kind->reader || !atomic_compare_exchange_strong(&seen->state, &nothing, HP_SEEN_BEGUN)) return;
    const bool known =
        d->kind->reader(d, index, &r, &ignored) == HP_OK && d->kind->size(d, index, &size, &ignored) == HP_OK;
    if (known)
        seen->type = hp_reader_size(r).type, seen->said = hp_reader_said(r), seen->h = size.h,
        seen->w = size.w, seen->as_bytes = dtype == HP_U8;
    atomic_store(&seen->state, known ? HP_SEEN_ONE : HP_SEEN_NOTHING);
}

const char *hp_dataset_describe(const hp_dataset *d, char *text, size_t bytes) {
    const hp_text t = {text, bytes};
    const hp_dataset_seen *seen = &d->seen;
    if (atomic_load(&seen->state) != HP_SEEN_ONE) return NULL;
    *text = '\0';
    say_samples(t, seen);
    if (d->count == 1 || d->kind->one_file) say_size(t, &d->o, seen->h, seen->w);
    return *text ? text : NULL;
}
