/* owners.h - who owns a run's directory: hplan's and its launcher's processes, listed in its file
 * `processes`. */
#ifndef HP_OWNERS_H
#define HP_OWNERS_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { OWNERS = 4 };

typedef struct owner {
    char what[16], host[256]; /* "hplan" or "launcher" */
    int32_t pid;
    uint64_t begin; /* hp_process_begin */
} owner;

/* Adds a process to the directory's list. Errors: HP_EIO. */
hp_status owners_note(const char *dir, const char *what, pid_t pid, hp_error *err);
/* Returns the number of owners; 0: not a run's directory. */
int owners_read(const char *dir, owner list[OWNERS]);

typedef enum ownership {
    OWNED_BY_NOBODY, /* all its processes are gone */
    OWNED_BY_RUN,
    OWNED_ELSEWHERE, /* by processes of another host, which cannot be checked here */
    OWNED_UNKNOWN    /* not a run's directory */
} ownership;
/* *who: the living owner, or the one on the other host. Also checks the ranks, by their board. */
ownership owners_of(const char *dir, owner *who);

#endif
