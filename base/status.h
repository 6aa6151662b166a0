/* status.h - error codes: a status is the process exit code; an error is a status with a message.
 *
 * A bug aborts (HP_ASSERT). A mistake of the user or the environment is returned as a status. The function
 * that detects it writes one message: what, where, limit, smallest fix. Callers only pass the status on. */
#ifndef HP_STATUS_H
#define HP_STATUS_H

#include <stdio.h>
#include <stdlib.h>

typedef enum hp_status {
    HP_OK = 0,
    HP_DIFF = 1,       /* a difference or a regression was found */
    HP_EUSAGE = 2,     /* wrong command line */
    HP_EPLAN = 3,      /* no feasible plan: illegal strategy, indivisible batch, out of memory */
    HP_EDATA = 65,     /* bad input file */
    HP_EUNAVAIL = 69,  /* missing device, back end, program, or an option this version does not have */
    HP_EINTERNAL = 70, /* an internal error that could still be reported */
    HP_ECREATE = 73,   /* cannot create an output */
    HP_EIO = 74,       /* reading or writing failed half-way (disk full) */
    HP_EREQUEUE = 75,  /* a checkpoint was written; requeue the job */
    HP_ESTALL = 124,   /* an operation exceeded its deadline */
    HP_EDEAD = 137     /* a rank died */
} hp_status;

typedef struct hp_error {
    hp_status code;
    char text[1024];
} hp_error;

/* Writes `code` and the message into `err` (which may be NULL) and returns `code`. */
hp_status hp_fail(hp_error *err, hp_status code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Prefixes the message already in `err` with "`context`: "; returns its code. */
hp_status hp_fail_in(hp_error *err, const char *context);

#define HP_TRY(call)                                                                                         \
    do {                                                                                                     \
        const hp_status hp_try_status_ = (call);                                                             \
        if (hp_try_status_ != HP_OK) return hp_try_status_;                                                  \
    } while (0)

#define HP_ASSERT(cond)                                                                                      \
    do {                                                                                                     \
        if (!(cond)) {                                                                                       \
            fprintf(stderr, "hplan: bug: %s:%d: %s does not hold\n", __FILE__, __LINE__, #cond);             \
            abort();                                                                                         \
        }                                                                                                    \
    } while (0)

#endif
