/* dnn_cache.c - choices kept from run to run in the user's cache, a file per GPU model and version of cuDNN:
 * what one run has timed, all ranks of the next one use. */
#include "exec/cuda/dnn_engine.h"
#include "plan/base/hash.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void path_of(const hp_dnn *d, char *out, size_t n) {
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    const uint64_t id = hp_hash64(d->gpu, strlen(d->gpu), cudnnGetVersion());
    if (cache && cache[0] == '/')
        snprintf(out, n, "%s/hplan/cudnn-%016llx.json", cache, (unsigned long long)id);
    else
        snprintf(out, n, "%s/.cache/hplan/cudnn-%016llx.json", home && home[0] ? home : "/tmp",
                 (unsigned long long)id);
}

static void make_folder(const char *path) {
    char folder[4096];
    snprintf(folder, sizeof folder, "%s", path);
    for (char *slash = strchr(folder + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(folder, 0777);
        *slash = '/';
    }
}

void hp_dnn_cache_read(hp_dnn *d) {
    char path[4096];
    hp_error none; /* there is none yet, or it is damaged: it will be written anew */
    path_of(d, path, sizeof path);
    hp_dnn_choices_load(d, path, &none);
    d->known = json_object_size(d->choices);
}

/* Ranks that end together take turns: what another has written meanwhile wins, so that the next run's agree.
 */
void hp_dnn_cache_write(hp_dnn *d) {
    char path[4096], fresh[4200];
    hp_error none;
    if (json_object_size(d->choices) == d->known) return;
    path_of(d, path, sizeof path);
    make_folder(path);
    hp_dnn_choices_load(d, path, &none);
    snprintf(fresh, sizeof fresh, "%s.%ld", path, (long)getpid());
    if (hp_dnn_choices_save(d, fresh, &none) != HP_OK || rename(fresh, path) != 0) unlink(fresh);
}
