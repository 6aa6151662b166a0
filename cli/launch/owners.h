/* owners.h - whose a run's folder is: hplan's and its launcher's processes, in the folder's file `processes`. */
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

/* Adds a process to the folder's. Errors: HP_EIO. */
hp_status owners_note(const char *dir, const char *what, pid_t pid, hp_error *err);
/* How many there are; 0: it is no run's folder. */
int owners_read(const char *dir, owner list[OWNERS]);

typedef enum ownership {
    OWNED_BY_NOBODY, /* all its processes are gone */
    OWNED_BY_RUN,
    OWNED_ELSEWHERE, /* by processes of another host, of which nobody here can tell */
    OWNED_UNKNOWN    /* it is no run's folder */
} ownership;
/* *who: the owner that lives, or of the other host. Also looks for the ranks, by their board. */
ownership owners_of(const char *dir, owner *who);

#endif
