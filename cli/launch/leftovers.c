/* leftovers.c - removes what a killed mpirun leaves. Open MPI 4.1 keeps a run's files in
 * $TMPDIR/ompi.HOST.UID/pid.PID. Its file contact.txt begins with the number of mpirun's job; all its jobs
 * share the upper half of that number, and shared-memory segments are named after it (opal/mca/btl/vader).
 * mpirun removes all of this when it ends, unless it is killed. */
#define _GNU_SOURCE /* nftw, GLOB_ONLYDIR */
#include "cli/launch/leftovers.h"

#include "cli/launch/owners.h"

#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *temporary_folder(void) {
    static const char *const NAMES[] = {"OMPI_MCA_orte_tmpdir_base", "TMPDIR", "TEMP",
                                        "TMP"}; /* in Open MPI's order */
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        const char *dir = getenv(NAMES[i]);
        if (dir && *dir) return dir;
    }
    return "/tmp";
}

static bool is_mine(const char *path) {
    struct stat st;
    return lstat(path, &st) == 0 && st.st_uid == geteuid();
}

/* --- Open MPI --- */

/* The part that all jobs of that mpirun share; 0: unknown. */
static unsigned long family_of(const char *session) {
    char path[PATH_MAX];
    unsigned long job = 0;
    snprintf(path, sizeof path, "%s/contact.txt", session);
    FILE *f = is_mine(path) ? fopen(path, "re") : NULL;
    if (f && fscanf(f, "%lu.", &job) != 1) job = 0;
    if (f) fclose(f);
    return job >> 16;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at) {
    (void)st, (void)at;
    if (kind == FTW_DP)
        rmdir(path);
    else
        unlink(path);
    return 0;
}

/* Removes vader_segment.HOST.UID.JOB.RANK, with the job in hexadecimal digits. */
static int remove_segments(unsigned long family) {
    char pattern[128];
    glob_t found;
    int n = 0;
    snprintf(pattern, sizeof pattern, "/dev/shm/vader_segment.*.%u.*", (unsigned)geteuid());
    if (glob(pattern, 0, NULL, &found) != 0) return 0;
    for (size_t i = 0; i < found.gl_pathc; i++) {
        char name[PATH_MAX], *rank, *job;
        snprintf(name, sizeof name, "%s", found.gl_pathv[i]);
        if (!(rank = strrchr(name, '.'))) continue;
        *rank = '\0';
        if (!(job = strrchr(name, '.')) || strtoul(job + 1, NULL, 16) >> 16 != family) continue;
        n += is_mine(found.gl_pathv[i]) && unlink(found.gl_pathv[i]) == 0;
    }
    globfree(&found);
    return n;
}

int leftovers_sweep_mpirun(pid_t mpirun) {
    char pattern[PATH_MAX];
    glob_t found;
    int n = 0;
    snprintf(pattern, sizeof pattern, "%s/ompi.*.%u/pid.%d", temporary_folder(), (unsigned)geteuid(),
             (int)mpirun);
    if (glob(pattern, 0, NULL, &found) != 0) return 0;
    for (size_t i = 0; i < found.gl_pathc; i++) {
        if (!is_mine(found.gl_pathv[i])) continue;
        const unsigned long family = family_of(found.gl_pathv[i]);
        if (family) n += remove_segments(family);
        n += nftw(found.gl_pathv[i], remove_one, 8, FTW_DEPTH | FTW_PHYS) == 0;
        *strrchr(found.gl_pathv[i], '/') = '\0';
        rmdir(found.gl_pathv[i]); /* succeeds if that was the last one */
    }
    globfree(&found);
    return n;
}

/* --- hplan --- */

/* Escapes characters that glob would take for a pattern. */
static void quote(const char *text, char *out, size_t size) {
    size_t n = 0;
    for (; *text && n + 2 < size; text++) {
        if (strchr("*?[]\\", *text)) out[n++] = '\\';
        out[n++] = *text;
    }
    out[n] = '\0';
}

size_t leftovers_beside(const char *trace, glob_t *found) {
    char quoted[PATH_MAX], pattern[PATH_MAX + 16];
    quote(trace, quoted, sizeof quoted);
    snprintf(pattern, sizeof pattern, "%s.tmp-??????", quoted);
    *found = (glob_t){0};
    return glob(pattern, GLOB_ONLYDIR, NULL, found) == 0 ? found->gl_pathc : 0;
}

void leftovers_tell(const char *trace) {
    glob_t found;
    owner who;
    size_t left = 0;
    for (size_t i = leftovers_beside(trace, &found); i-- > 0;)
        left += owners_of(found.gl_pathv[i], &who) == OWNED_BY_NOBODY;
    globfree(&found);
    if (left == 1)
        fprintf(stderr,
                "hplan: note: a run of this name was killed and has left its folder: hplan recover %s\n",
                trace);
    else if (left > 1)
        fprintf(
            stderr,
            "hplan: note: %zu runs of this name were killed and have left their folders: hplan recover %s\n",
            left, trace);
}
