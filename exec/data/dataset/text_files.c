/* text_files.c - see text_files.h. */
#include "exec/data/dataset/text_files.h"

#include "exec/data/dataset/dataset_kind.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LOOK_BYTES = 8000, MOST_DEEP = 64 };
static const int64_t MOST_BYTES = INT64_C(16) << 30;

typedef struct walk {
    hp_arena *arena;
    hp_text_fn *fn;
    void *self;
    int64_t bytes;
    int files;
} walk;

/* --- one file --- */

static hp_status read_bytes(int fd, const char *path, uint8_t *to, int64_t n, hp_error *err) {
    for (int64_t at = 0; at < n;) {
        const ssize_t got = read(fd, to + at, (size_t)(n - at));
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0)
            return hp_fail(err, HP_EDATA, "cannot read %s: %s", path,
                           got < 0 ? strerror(errno) : "it ends early");
        at += got;
    }
    return HP_OK;
}

static bool is_text(const uint8_t *bytes, int64_t n) {
    return !memchr(bytes, 0, (size_t)(n < LOOK_BYTES ? n : LOOK_BYTES));
}

static hp_status use_bytes(walk *w, const char *path, const uint8_t *bytes, int64_t n, bool named,
                           hp_error *err) {
    if (!is_text(bytes, n) && named)
        return hp_fail(err, HP_EDATA, "%s is no text: it has bytes of 0; leave it out, or unpack it", path);
    if (!is_text(bytes, n)) return HP_OK;
    w->bytes += n;
    w->files++;
    if (w->bytes > MOST_BYTES)
        return hp_fail(err, HP_EDATA,
                       "%s: with it there are more than %lld GiB of text, which all lie in memory; "
                       "give fewer files",
                       path, (long long)(MOST_BYTES >> 30));
    return w->fn(w->self, path, bytes, n, err);
}

static hp_status read_file(walk *w, int fd, const char *path, bool named, hp_error *err) {
    struct stat st;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
        return hp_fail(err, HP_EDATA, "%s is no regular file and no folder; give files of text", path);
    if (st.st_size > MOST_BYTES)
        return hp_fail(err, HP_EDATA, "%s has %lld bytes, text at most %lld", path, (long long)st.st_size,
                       (long long)MOST_BYTES);
    uint8_t *bytes = malloc((size_t)st.st_size + 1);
    if (!bytes)
        return hp_fail(err, HP_EDATA, "%s: no memory for its %lld bytes", path, (long long)st.st_size);
    hp_status s = read_bytes(fd, path, bytes, st.st_size, err);
    if (s == HP_OK) s = use_bytes(w, path, bytes, st.st_size, named, err);
    free(bytes);
    return s;
}

/* Never blocks on a pipe; follows no links found inside a folder. */
static hp_status open_file(walk *w, const char *path, bool named, hp_error *err) {
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | (named ? 0 : O_NOFOLLOW));
    if (fd < 0)
        return hp_fail(err, HP_EDATA, "cannot open %s: %s; check its path and permissions", path,
                       strerror(errno));
    const hp_status s = read_file(w, fd, path, named, err);
    close(fd);
    return s;
}

/* --- folders --- */

static mode_t kind_of(const char *path) {
    struct stat st;
    return lstat(path, &st) == 0 ? st.st_mode & S_IFMT : 0;
}

static bool file_or_folder(const char *path) {
    return kind_of(path) == S_IFREG || kind_of(path) == S_IFDIR;
}

static hp_status read_folder(walk *w, const char *path, int deep, hp_error *err) {
    hp_names names;
    if (deep > MOST_DEEP) return hp_fail(err, HP_EDATA, "%s: more than %d folders deep", path, MOST_DEEP);
    HP_TRY(hp_names_list(w->arena, path, file_or_folder, &names, err));
    for (int i = 0; i < names.n; i++) {
        const char *inside = hp_arena_printf(w->arena, "%s/%s", path, names.name[i]);
        if (kind_of(inside) == S_IFDIR)
            HP_TRY(read_folder(w, inside, deep + 1, err));
        else
            HP_TRY(open_file(w, inside, false, err));
    }
    return HP_OK;
}

hp_status hp_text_files(hp_arena *a, const char *list, hp_text_fn *fn, void *self, hp_error *err) {
    walk w = {.arena = a, .fn = fn, .self = self};
    char *copy = hp_arena_strdup(a, list), *rest = NULL;
    for (char *path = strtok_r(copy, ",", &rest); path; path = strtok_r(NULL, ",", &rest))
        HP_TRY(hp_is_dir(path) ? read_folder(&w, path, 0, err) : open_file(&w, path, true, err));
    if (w.files > 0) return HP_OK;
    return hp_fail(err, HP_EDATA, "--data text:%s: no text in it; give files, or folders of them", list);
}
