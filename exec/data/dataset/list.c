/* list.c - lists a folder of data in the same order on every rank. */
#include "exec/data/dataset/dataset_kind.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

bool hp_is_dir(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

bool hp_is_file(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

bool hp_is_image(const char *path) {
    return hp_is_image_name(strrchr(path, '/') + 1) && hp_is_file(path);
}

static int by_bytes(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

hp_status hp_names_list(hp_arena *a, const char *dir, bool (*wanted)(const char *path), hp_names *out,
                        hp_error *err) {
    DIR *d = opendir(dir);
    if (!d)
        return hp_fail(err, HP_EDATA, "cannot list %s: %s; check the path and its permissions", dir,
                       strerror(errno));
    *out = (hp_names){0};
    for (struct dirent *e; (e = readdir(d));) {
        const char *path = e->d_name[0] == '.' ? NULL : hp_arena_printf(a, "%s/%s", dir, e->d_name);
        if (!path || !wanted(path)) {
            if (path && hp_is_file(path) && !out->others++) out->other = path;
            continue;
        }
        HP_ROOM(a, out->name, out->n, out->capacity);
        out->name[out->n++] = hp_arena_strdup(a, e->d_name);
    }
    closedir(d);
    if (out->n) qsort(out->name, (size_t)out->n, sizeof *out->name, by_bytes);
    return HP_OK;
}

void hp_names_count_others(hp_dataset *d, const hp_names *names) {
    if (!d->other) d->other = names->other;
    d->left_out += names->others;
}

int hp_names_find(const hp_names *names, const char *name) {
    char **at =
        names->n ? bsearch(&name, names->name, (size_t)names->n, sizeof *names->name, by_bytes) : NULL;
    return at ? (int)(at - names->name) : -1;
}

const char *hp_split_name(int32_t split) {
    static const char *const names[] = {[HP_SPLIT_TRAIN] = "train", [HP_SPLIT_TEST] = "test"};
    return names[split];
}
