/* output.c - writes boxes of logits to their positions in PATH.part; see output.h. */
#define _GNU_SOURCE /* fallocate */
#include "exec/data/output/output_kind.h"
#include "base/alloc.h"

#include "base/new_file.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static const hp_output_kind *const kinds[] = {&hp_output_npy, &hp_output_json, &hp_output_tiff,
                                              &hp_output_bin};

/* WRITE_BYTES: bytes per write, far below Linux's limit for one call. */
enum { WRITE_BYTES = 1 << 30, CLASSES_AT_ONCE = 1 << 16 };

struct hp_output {
    hp_output_layout layout;
    int32_t c; /* channels of the logits */
    bool classes;
    int fd;
    char name[4096];
};

const hp_output_kind *hp_output_kind_of(const char *path) {
    const char *dot = strrchr(path, '.');
    for (size_t i = 0; dot && i < sizeof kinds / sizeof *kinds; i++)
        if (strcasecmp(dot, kinds[i]->suffix) == 0) return kinds[i];
    return dot && strcasecmp(dot, ".tiff") == 0 ? &hp_output_tiff : NULL;
}

hp_output_layout hp_output_layout_of(const hp_output_spec *s) {
    hp_output_layout l = {.dim = {s->n, s->h, s->w, s->classes ? 1 : s->c}, .elem_bytes = s->classes ? 1 : 4};
    l.shape[l.n_shape++] = s->n;
    if (s->h > 1 || s->w > 1) l.shape[l.n_shape++] = s->h, l.shape[l.n_shape++] = s->w;
    if (!s->classes) l.shape[l.n_shape++] = s->c;
    char text[HP_OUTPUT_HEADER];
    const hp_output_kind *kind = hp_output_kind_of(s->path);
    if (kind->header) l.header_bytes = kind->header(&l, text);
    return l;
}

static int64_t bytes_of(const hp_output_layout *l) {
    return l->header_bytes + l->dim[0] * l->dim[1] * l->dim[2] * l->dim[3] * l->elem_bytes;
}

/* Can this output be written under this name? Does not touch any file. Errors: HP_EUSAGE with the fix. */
static hp_status check_spec(const hp_output_spec *s, hp_error *err) {
    HP_ASSERT(s->n > 0 && s->h > 0 && s->w > 0 && s->c > 0);
    const hp_output_kind *kind = hp_output_kind_of(s->path);
    int64_t elems = s->n;
    if (!kind) return hp_fail(err, HP_EUSAGE, "%s: end the name in .npy, .json, .tif or .bin", s->path);
    if (s->classes && s->c > 255)
        return hp_fail(err, HP_EUSAGE, "%s: %d classes do not fit into one byte each; write the logits",
                       s->path, s->c);
    const bool large = __builtin_mul_overflow(elems, (int64_t)s->h * s->w, &elems) ||
                       __builtin_mul_overflow(elems, (int64_t)s->c, &elems) || elems > INT64_MAX / 8;
    if (large) return hp_fail(err, HP_EUSAGE, "%s: more than 2^60 numbers", s->path);
    return kind->check ? kind->check(s, err) : HP_OK;
}

hp_status hp_output_part_name(const hp_output_spec *s, char name[4096], hp_error *err) {
    if (snprintf(name, 4096, "%s.part", s->path) < 4096) return HP_OK;
    return hp_fail(err, HP_ECREATE, "the name '%.64s...' is too long; give a shorter one", s->path);
}

hp_status hp_output_failed(const char *path, hp_error *err) {
    return hp_fail(err, HP_EIO, "writing %s failed: %s; free some space or give another folder", path,
                   strerror(errno));
}

/* --- opening --- */

static hp_status write_all(const hp_output *o, const void *data, size_t bytes, int64_t offset,
                           hp_error *err) {
    const char *from = data;
    while (bytes) {
        const ssize_t n = pwrite(o->fd, from, bytes < WRITE_BYTES ? bytes : WRITE_BYTES, offset);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return hp_output_failed(o->name, err);
        from += n;
        offset += n;
        bytes -= (size_t)n;
    }
    return HP_OK;
}

/* Detects a full disk now if the system can reserve space, rather than after hours. */
static hp_status make_room(const hp_output *o, const hp_output_spec *s, hp_error *err) {
    const off_t size = (off_t)bytes_of(&o->layout);
    char text[HP_OUTPUT_HEADER];
    if (fallocate(o->fd, 0, 0, size) != 0 &&
        ((errno != EOPNOTSUPP && errno != ENOSYS) || ftruncate(o->fd, size) != 0))
        return hp_fail(err, HP_EIO,
                       "no room for the %lld bytes of %s: %s; free some space or give another "
                       "folder",
                       (long long)size, o->name, strerror(errno));
    const hp_output_kind *kind = hp_output_kind_of(s->path);
    if (!kind->header) return HP_OK;
    return write_all(o, text, (size_t)kind->header(&o->layout, text), 0, err);
}

static hp_status open_part(const hp_output_spec *s, int flags, hp_output **out, hp_error *err) {
    HP_TRY(check_spec(s, err));
    hp_output *o = hp_zeroed(1, sizeof *o);
    o->layout = hp_output_layout_of(s);
    o->c = s->c;
    o->classes = s->classes;
    const hp_status named = hp_output_part_name(s, o->name, err);
    o->fd = named == HP_OK ? open(o->name, flags | O_NOFOLLOW | O_CLOEXEC, 0666) : -1;
    if (o->fd >= 0) {
        *out = o;
        return HP_OK;
    }
    const hp_status status = named != HP_OK ? named
                                            : hp_fail(err, HP_ECREATE,
                                                      "cannot open %s: %s; give a path in an existing, "
                                                      "writable folder that all nodes share",
                                                      o->name, strerror(errno));
    free(o);
    return status;
}

/* Overwrites what an earlier run left under that name, but not what another run is writing. */
static hp_status claim(const hp_output *o, hp_error *err) {
    struct stat st;
    if (fstat(o->fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_nlink > 1)
        return hp_fail(err, HP_ECREATE, "%s is no file of hplan's: remove it, or give another name", o->name);
    if (flock(o->fd, LOCK_EX | LOCK_NB) != 0)
        return hp_fail(err, HP_ECREATE, "%s is being written by another run: give another name", o->name);
    return ftruncate(o->fd, 0) == 0 ? HP_OK : hp_output_failed(o->name, err);
}

hp_status hp_output_create(const hp_output_spec *s, hp_output **out, hp_error *err) {
    hp_output *o;
    HP_TRY(check_spec(s, err));
    HP_TRY(hp_new_file_check_plain(s->path, err));
    HP_TRY(open_part(s, O_RDWR | O_CREAT, &o, err));
    hp_status status = claim(o, err);
    const bool ours = status == HP_OK;
    if (ours) status = make_room(o, s, err);
    if (status == HP_OK) {
        *out = o;
        return HP_OK;
    }
    hp_output_close(o, NULL);
    if (ours) hp_output_discard(s);
    return status;
}

hp_status hp_output_join(const hp_output_spec *s, hp_output **out, hp_error *err) {
    hp_output *o;
    struct stat st;
    HP_TRY(open_part(s, O_RDWR, &o, err));
    if (fstat(o->fd, &st) == 0 && st.st_size == bytes_of(&o->layout)) {
        *out = o;
        return HP_OK;
    }
    const hp_status status = hp_fail(err, HP_ECREATE,
                                     "%s is not the file that rank 0 made; give a path in a "
                                     "folder that all nodes share",
                                     o->name);
    hp_output_close(o, NULL);
    return status;
}

hp_status hp_output_close(hp_output *o, hp_error *err) {
    if (!o) return HP_OK;
    const hp_status s = close(o->fd) == 0 ? HP_OK : hp_output_failed(o->name, err);
    free(o);
    return s;
}

void hp_output_discard(const hp_output_spec *s) {
    char name[4096];
    if (hp_output_part_name(s, name, NULL) == HP_OK) unlink(name);
}

/* --- boxes --- */

enum { NO_CLASS = 255 };

static uint8_t largest(const float *logit, int32_t c) {
    int32_t best = 0;
    if (isnan(logit[0])) return NO_CLASS;
    for (int32_t k = 1; k < c; k++)
        if (logit[k] > logit[best]) best = k;
    return (uint8_t)best;
}

/* Writes n consecutive numbers of the file, starting at number `at`. */
static hp_status write_run(const hp_output *o, int64_t at, int64_t n, const float *data, hp_error *err) {
    const int64_t offset = o->layout.header_bytes + at * o->layout.elem_bytes;
    uint8_t classes[CLASSES_AT_ONCE];
    if (!o->classes) return write_all(o, data, (size_t)n * sizeof *data, offset, err);
    for (int64_t i = 0; i < n; i += CLASSES_AT_ONCE) {
        const int64_t m = n - i < CLASSES_AT_ONCE ? n - i : CLASSES_AT_ONCE;
        for (int64_t k = 0; k < m; k++) classes[k] = largest(data + (i + k) * o->c, o->c);
        HP_TRY(write_all(o, classes, (size_t)m, offset + i, err));
    }
    return HP_OK;
}

/* The box as `runs` of `n` consecutive numbers: contiguous below the first axis that the box does not cover
 * entirely. */
typedef struct run_layout {
    int axis; /* runs are counted over the axes before this one */
    int64_t n, runs, len[HP_AXES];
} run_layout;

static run_layout layout_runs(const hp_output *o, const hp_box *box) {
    run_layout p = {.axis = HP_AXES - 1, .n = 1, .runs = 1};
    for (int a = 0; a < HP_AXES; a++) p.len[a] = hp_box_len(box, a);
    if (o->classes) p.len[HP_AXIS_C] = 1;
    while (p.axis > 0 && p.len[p.axis] == o->layout.dim[p.axis]) p.axis--;
    for (int a = 0; a < HP_AXES; a++) *(a < p.axis ? &p.runs : &p.n) *= p.len[a];
    return p;
}

/* Index of the file's first number of run `k`. */
static int64_t run_at(const hp_output *o, const hp_box *box, const run_layout *p, int64_t k) {
    int64_t index[HP_AXES], at = 0;
    for (int a = HP_AXES - 1; a >= 0; a--) {
        index[a] = o->classes && a == HP_AXIS_C ? 0 : box->lo[a];
        if (a >= p->axis) continue;
        index[a] += k % p->len[a];
        k /= p->len[a];
    }
    for (int a = 0; a < HP_AXES; a++) at = at * o->layout.dim[a] + index[a];
    return at;
}

hp_status hp_output_write(hp_output *o, const hp_box *box, const float *data, hp_error *err) {
    if (hp_box_empty(box)) return HP_OK;
    const int64_t dim[HP_AXES] = {o->layout.dim[0], o->layout.dim[1], o->layout.dim[2], o->c};
    for (int a = 0; a < HP_AXES; a++) HP_ASSERT(box->lo[a] >= 0 && box->hi[a] <= dim[a]);
    HP_ASSERT(!o->classes || hp_box_len(box, HP_AXIS_C) == o->c);
    const run_layout p = layout_runs(o, box);
    const int64_t step = p.n * (o->classes ? o->c : 1);
    for (int64_t k = 0; k < p.runs; k++)
        HP_TRY(write_run(o, run_at(o, box, &p, k), p.n, data + k * step, err));
    return HP_OK;
}
