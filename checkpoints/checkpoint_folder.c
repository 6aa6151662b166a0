/* checkpoint_folder.c - see checkpoint_folder.h. */
#include "checkpoints/checkpoint_folder.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>

static const char PREFIX[] = "step-", PART[] = ".part";
enum { DIGITS = 12 };

const char *hp_checkpoint_path(hp_arena *a, const char *dir, int64_t step, bool part) {
    return hp_arena_printf(a, "%s/%s%0*lld%s", dir, PREFIX, DIGITS, (long long)step, part ? PART : "");
}

const char *hp_checkpoint_file(hp_arena *a, const char *path, int64_t rank) {
    return hp_arena_printf(a, "%s/rank-%lld.safetensors", path, (long long)rank);
}

/* -1: another name. */
static int64_t step_of(const char *name, const char *suffix) {
    const size_t prefix = strlen(PREFIX);
    if (strncmp(name, PREFIX, prefix) != 0 || strspn(name + prefix, "0123456789") != DIGITS) return -1;
    return strcmp(name + prefix + DIGITS, suffix) == 0 ? strtoll(name + prefix, NULL, 10) : -1;
}

static int newest_first(const void *a, const void *b) {
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x < y) - (x > y);
}

static hp_status list(hp_arena *a, const char *dir, const char *suffix, int64_t **step, int *n,
                      hp_error *err) {
    int room = 0;
    DIR *d = opendir(dir);
    *n = 0;
    *step = NULL;
    if (!d) return hp_fail(err, HP_EDATA, "cannot open the folder %s: %s", dir, strerror(errno));
    for (struct dirent *e; (e = readdir(d));) {
        const int64_t s = step_of(e->d_name, suffix);
        if (s < 0) continue;
        HP_ROOM(a, *step, *n, room);
        (*step)[(*n)++] = s;
    }
    closedir(d);
    if (*n) qsort(*step, (size_t)*n, sizeof **step, newest_first);
    return HP_OK;
}

hp_status hp_checkpoint_list(hp_arena *a, const char *dir, int64_t **step, int *n, hp_error *err) {
    return list(a, dir, "", step, n, err);
}

hp_status hp_checkpoint_read(hp_arena *a, const char *dir, int64_t step, hp_manifest *m, hp_error *err) {
    const char *path = hp_arena_printf(a, "%s/%s", hp_checkpoint_path(a, dir, step, false), HP_MANIFEST);
    HP_TRY(hp_manifest_read(a, path, m, err));
    if (m->step == step) return HP_OK;
    return hp_fail(err, HP_EDATA, "%s: of step %lld", path, (long long)m->step);
}

hp_status hp_checkpoint_verify(hp_arena *a, const char *dir, const hp_manifest *m, int64_t first,
                               int64_t every, hp_error *err) {
    const char *path = hp_checkpoint_path(a, dir, m->step, false);
    for (int64_t r = first; r < m->ranks; r += every)
        HP_TRY(hp_disk_verify(hp_checkpoint_file(a, path, r), &m->file[r], err));
    return HP_OK;
}

/* --- the end of a save --- */

/* A checkpoint without a manifest is not one, so an interrupted removal leaves nothing
 * that passes for one. */
static void prune(hp_arena *a, const hp_disk_ops *disk, const char *dir, int64_t newest, int64_t keep) {
    int64_t *step, kept = 0;
    int n;
    if (list(a, dir, "", &step, &n, NULL) != HP_OK) return;
    /* a later one was there before and is damaged: otherwise the run would have resumed from it */
    for (int i = 0; i < n; i++)
        if (step[i] <= newest && ++kept > keep)
            hp_disk_remove(disk, hp_checkpoint_path(a, dir, step[i], false), HP_MANIFEST);
}

hp_status hp_checkpoint_commit(const hp_disk_ops *disk, const char *dir, const hp_manifest *m, int64_t keep,
                               hp_error *err) {
    hp_arena *a = hp_arena_new();
    const char *part = hp_checkpoint_path(a, dir, m->step, true),
               *final = hp_checkpoint_path(a, dir, m->step, false);
    char *text = hp_manifest_text(m);
    hp_status s = hp_disk_put(disk, hp_arena_printf(a, "%s/%s", part, HP_MANIFEST), text, err);
    free(text);
    if (s == HP_OK) s = hp_disk_sync_folder(disk, part, err);
    /* A checkpoint of this step was damaged: otherwise the run would have resumed from it. */
    if (s == HP_OK) hp_disk_remove(disk, final, HP_MANIFEST);
    if (s == HP_OK) s = hp_disk_rename(disk, part, final, err);
    if (s == HP_OK) s = hp_disk_sync_folder(disk, dir, err);
    if (s == HP_OK)
        prune(a, disk, dir, m->step, keep < 1 ? 1 : keep);
    else
        hp_disk_remove(disk, part, HP_MANIFEST);
    hp_arena_free(a);
    return s;
}

void hp_checkpoint_clean(const hp_disk_ops *disk, const char *dir) {
    hp_arena *a = hp_arena_new();
    int64_t *step;
    int n;
    if (list(a, dir, PART, &step, &n, NULL) == HP_OK)
        for (int i = 0; i < n; i++)
            hp_disk_remove(disk, hp_checkpoint_path(a, dir, step[i], true), HP_MANIFEST);
    hp_arena_free(a);
}
