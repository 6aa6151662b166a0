/* cache.c - chosen engines, kept in the user's cache: one file per GPU model and cuDNN version. All
 * ranks of the next run use what one run has timed. Written after every new choice, so that a
 * killed run loses none. */
#include "exec/cuda/dnn/engine.h"
#include "base/hash.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- files --- */

void hp_dnn_cache_path(const hp_dnn *d, const char *rest, char *out, size_t n) {
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    const uint64_t id = hp_hash64(d->gpu, strlen(d->gpu), cudnnGetVersion());
    if (cache && cache[0] == '/')
        snprintf(out, n, "%s/hplan/cudnn-%016llx%s", cache, (unsigned long long)id, rest);
    else
        snprintf(out, n, "%s/.cache/hplan/cudnn-%016llx%s", home && home[0] ? home : "/tmp",
                 (unsigned long long)id, rest);
}

static void make_folder(const char *path) {
    char folder[HP_DNN_PATH];
    snprintf(folder, sizeof folder, "%s", path);
    for (char *slash = strchr(folder + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(folder, 0777);
        *slash = '/';
    }
}

/* Only the user's own file is trusted: a cuDNN plan contains code, and anybody can write to /tmp. */
static bool is_ours(int fd) {
    struct stat is;
    return fstat(fd, &is) == 0 && S_ISREG(is.st_mode) && is.st_uid == geteuid() &&
           is.st_size <= HP_DNN_MOST_FILE;
}

json_t *hp_dnn_cache_get(const char *path) {
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) return NULL;
    json_t *o = is_ours(fd) ? json_loadfd(fd, 0, NULL) : NULL;
    close(fd);
    return o;
}

void hp_dnn_cache_put(const char *path, const json_t *o) {
    char fresh[HP_DNN_PATH + 8];
    make_folder(path);
    snprintf(fresh, sizeof fresh, "%s.XXXXXX", path);
    const int fd = mkstemp(fresh);
    if (fd < 0) return;
    const bool written = json_dumpfd(o, fd, JSON_INDENT(1) | JSON_SORT_KEYS) == 0;
    if (close(fd) != 0 || !written || rename(fresh, path) != 0) unlink(fresh);
}

/* --- choices --- */

/* Choices in the file; none if there is no file or it is damaged, in which case it is rewritten. */
static json_t *choices_there(const hp_dnn *d, const char *path) {
    json_t *o = hp_dnn_cache_get(path), *there = o ? hp_dnn_choices_of(d, o) : json_object();
    json_decref(o);
    return there;
}

void hp_dnn_cache_read(hp_dnn *d) {
    char path[HP_DNN_PATH];
    hp_dnn_cache_path(d, ".json", path, sizeof path);
    json_t *there = choices_there(d, path);
    json_object_update_missing(d->choices, there);
    json_decref(there);
}

/* Keeps choices that another rank has written meanwhile, so that the next run's ranks agree, and
 * adopts them where this rank has none. Two simultaneous writes may lose one rank's choices; its next
 * write restores them. */
void hp_dnn_cache_write(hp_dnn *d) {
    char path[HP_DNN_PATH];
    hp_dnn_cache_path(d, ".json", path, sizeof path);
    json_t *there = choices_there(d, path), *all = json_copy(d->choices);
    json_object_update(all, there);
    json_object_update_missing(d->choices, there);
    if (!json_equal(all, there)) {
        json_t *o = hp_dnn_choices_document(d, all);
        hp_dnn_cache_put(path, o);
        json_decref(o);
    }
    json_decref(all);
    json_decref(there);
}
