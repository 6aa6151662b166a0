/* idx.c - the IDX files of MNIST and similar data sets (LeCun, Cortes, Burges: "The MNIST database"), plain
 * or gzip, read whole. Format: 0, 0, type 8 (unsigned byte), rank, then big-endian sizes, then the bytes. */
#include "exec/data/dataset/dataset_kind.h"

#include <errno.h>
#include <string.h>
#include <zlib.h>

/* Installation folder of Debian's package dataset-fashion-mnist. */
#define FASHION_MNIST_DIR "/usr/share/datasets/fashion-mnist"

/* Limit on the size of an IDX file: 30 times MNIST's largest. */
enum { IDX_MAX_BYTES = 1 << 30 };

typedef struct idx_file {
    int32_t dim[3];
    uint8_t *data;
} idx_file;

typedef struct idx {
    idx_file images, labels; /* (count, h, w) and (count) */
} idx;

static const char *const prefixes[] = {[HP_SPLIT_TRAIN] = "train", [HP_SPLIT_TEST] = "t10k"};

/* Path of dir/prefix-what, plain or with .gz; NULL if there is neither. */
static const char *find_file(hp_arena *a, const char *dir, const char *prefix, const char *what) {
    char *plain = hp_arena_printf(a, "%s/%s-%s", dir, prefix, what);
    char *packed = hp_arena_printf(a, "%s.gz", plain);
    return hp_is_file(plain) ? plain : hp_is_file(packed) ? packed : NULL;
}

/* The word "images" in the name of an images file; NULL: not such a name. */
static char *images_word(const char *path) {
    const char *slash = strrchr(path, '/');
    return strstr(slash ? slash : path, "images-idx3-ubyte");
}

static bool accepts_name(const char *name) {
    if (strcmp(name, "fashion-mnist") == 0) return true;
    hp_arena *a = hp_arena_new();
    const bool has =
        find_file(a, name, "train", "images-idx3-ubyte") || find_file(a, name, "t10k", "images-idx3-ubyte");
    hp_arena_free(a);
    return has || (hp_is_file(name) && images_word(name));
}

static uint32_t big_endian(const uint8_t *b) {
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

static hp_status read_exactly(gzFile f, const char *path, uint8_t *to, size_t n, hp_error *err) {
    const int got = n > 0 ? gzread(f, to, (unsigned)n) : 0;
    if (got == (int)n) return HP_OK;
    int code = Z_OK;
    const char *why = gzerror(f, &code);
    if (code == Z_OK || code == Z_BUF_ERROR) why = "it ends early";
    return hp_fail(err, HP_EDATA, "%s: cannot read %zu bytes: %s; fetch the file again", path, n, why);
}

static hp_status read_sizes(gzFile f, const char *path, int rank, idx_file *file, size_t *bytes,
                            hp_error *err) {
    uint8_t head[4 + 4 * 3];
    HP_TRY(read_exactly(f, path, head, 4 + 4 * (size_t)rank, err));
    if (head[0] || head[1] || head[2] != 8 || head[3] != rank)
        return hp_fail(err, HP_EDATA,
                       "%s: magic number %08x, not 0000080%d (unsigned bytes, %d dimensions); is it IDX?",
                       path, big_endian(head), rank, rank);
    *bytes = 1;
    for (int i = 0; i < rank; i++) {
        const uint32_t n = big_endian(head + 4 + 4 * i);
        if (n == 0 || n > IDX_MAX_BYTES || *bytes * n > IDX_MAX_BYTES)
            return hp_fail(err, HP_EDATA, "%s: dimension %d is %u; hplan reads 1 to %d bytes of IDX data",
                           path, i, n, (int)IDX_MAX_BYTES);
        *bytes *= n;
        file->dim[i] = (int32_t)n;
    }
    return HP_OK;
}

static hp_status read_all(gzFile f, const char *path, int rank, idx_file *file, hp_error *err) {
    size_t bytes = 0;
    HP_TRY(read_sizes(f, path, rank, file, &bytes, err));
    file->data = malloc(bytes);
    if (!file->data) return hp_fail(err, HP_EDATA, "%s: no memory for its %zu bytes", path, bytes);
    HP_TRY(read_exactly(f, path, file->data, bytes, err));
    uint8_t more;
    const int extra = gzread(f, &more, 1); /* reaching the end also verifies gzip's checksum */
    if (extra > 0)
        return hp_fail(err, HP_EDATA,
                       "%s: holds more than the %zu bytes its header says; fetch the file again", path,
                       bytes);
    if (extra < 0) return hp_fail(err, HP_EDATA, "%s: damaged gzip data; fetch the file again", path);
    return HP_OK;
}

static hp_status read_file(const char *path, int rank, idx_file *file, hp_error *err) {
    gzFile f = gzopen(path, "rbe");
    if (!f) return hp_fail(err, HP_EDATA, "cannot open %s: %s; check its permissions", path, strerror(errno));
    gzbuffer(f, 1 << 17);
    const hp_status s = read_all(f, path, rank, file, err);
    gzclose_r(f);
    return s;
}

/* The paths of the split's images and labels. */
static hp_status find_pair(hp_dataset *d, const char **images, const char **labels, hp_error *err) {
    const char *name = d->o.name, *prefix = prefixes[d->o.split];
    const bool debian = strcmp(name, "fashion-mnist") == 0;
    const char *fix = debian ? "apt install dataset-fashion-mnist" : "put it there, plain or with .gz";
    if (hp_is_file(name)) { /* an images file with its labels beside it, for any split */
        char *other = hp_arena_strdup(d->arena, name);
        memcpy(images_word(other), "labels-idx1", 11);
        *images = name;
        *labels = other;
        return HP_OK;
    }
    const char *dir = debian ? FASHION_MNIST_DIR : name;
    *images = find_file(d->arena, dir, prefix, "images-idx3-ubyte");
    *labels = find_file(d->arena, dir, prefix, "labels-idx1-ubyte");
    if (!*images || !*labels)
        return hp_fail(err, HP_EDATA, "%s/%s-%s is missing; %s", dir, prefix,
                       *images ? "labels-idx1-ubyte" : "images-idx3-ubyte", fix);
    return HP_OK;
}

static hp_status check_labels(const hp_dataset *d, const idx *x, const char *images, const char *labels,
                              hp_error *err) {
    const int32_t n = x->images.dim[0];
    if (x->labels.dim[0] != n)
        return hp_fail(err, HP_EDATA, "%s has %d labels for the %d images of %s; fetch both again", labels,
                       x->labels.dim[0], n, images);
    for (int32_t i = 0; i < n; i++)
        if (x->labels.data[i] >= d->o.classes)
            return hp_fail(err, HP_EDATA,
                           "%s: label %d of sample %d, the plan has %d classes; simulate with --classes %d",
                           labels, x->labels.data[i], i, d->o.classes, x->labels.data[i] + 1);
    return HP_OK;
}

static hp_status open_idx(hp_dataset *d, hp_error *err) {
    idx *x = d->self = HP_NEW(d->arena, idx, 1);
    const char *images, *labels;
    HP_TRY(find_pair(d, &images, &labels, err));
    HP_TRY(read_file(labels, 1, &x->labels, err));
    HP_TRY(read_file(images, 3, &x->images, err));
    HP_TRY(check_labels(d, x, images, labels, err));
    d->count = x->images.dim[0];
    return HP_OK;
}

static hp_status size(hp_dataset *d, int64_t index, hp_pixels *view, hp_error *err) {
    (void)err;
    const idx_file *f = &((idx *)d->self)->images;
    const int32_t h = f->dim[1], w = f->dim[2];
    *view = (hp_pixels){h, w, 1, {0, 0, h, w}, f->data + index * h * w};
    return HP_OK;
}

static hp_status pixels(hp_dataset *d, int64_t index, const hp_crop *window, hp_pixels *view, hp_error *err) {
    (void)window;
    return size(d, index, view, err); /* the whole data set is in memory */
}

static int32_t label(const hp_dataset *d, int64_t index) {
    return ((const idx *)d->self)->labels.data[index];
}

static void close_idx(hp_dataset *d) {
    idx *x = d->self;
    if (!x) return;
    free(x->images.data);
    free(x->labels.data);
}

const hp_dataset_kind hp_dataset_idx = {
    .name = "idx",
    .accepts = accepts_name,
    .open = open_idx,
    .size = size,
    .pixels = pixels,
    .label = label,
    .close = close_idx,
};
