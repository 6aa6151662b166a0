/* decoder.h - image files are decoded in processes of their own, which have limits: a file that crashes, loops or
 * fills memory costs its decoder, and the rank reads an error that names the file.
 *
 * A rank starts one process before it has threads and before MPI_Init, as neither survives a fork. That process does nothing
 * but fork decoders when it is asked to, one for each thread that reads; a decoder that dies is so replaced at any time.
 * A decoder opens files by path and does what a reader in this process would do (reader_kind.h): open, rows, level, close.
 * Pixels come through shared memory that the rank made and the decoder cannot shrink. Whatever a decoder answers is checked.
 *
 * All of them end with the rank, however it ends (PR_SET_PDEATHSIG). confine.c says what they may not do. */
#ifndef HP_DECODER_H
#define HP_DECODER_H

#include "exec/data/image/pulse.h"
#include "base/status.h"

#include <stdint.h>

typedef struct hp_decoders hp_decoders; /* the process that starts them */
typedef struct hp_decoder hp_decoder;   /* one; for one thread at a time */

typedef struct hp_decoder_limits {
    int64_t memory_bytes; /* of address space, beyond what a process has at its start */
    double cpu_s;         /* of processor time for one call, */
    double pixels_per_s;  /* and for what lies between the image's top and the last row asked for */
    double silent_s;      /* without using a processor and without an answer */
} hp_decoder_limits;

/* 3 GiB: HP_MAX_PIXELS (image.h) at 7 bytes, a library's own 1 GiB. 30 s, and 2 million pixels per second: the slowest format,
 * interlaced PNG, decodes some 10 million on a busy core (docs/measurements.md). 60 s: as long as file systems take over. */
hp_decoder_limits hp_decoder_limits_default(void);

/* To be called by a process with one thread, before MPI_Init. Errors: HP_EUNAVAIL. */
hp_status hp_decoders_start(const hp_decoder_limits *l, hp_decoders **d, hp_error *err);
void hp_decoders_stop(hp_decoders *d); /* NULL is fine; after all decoders are freed */

/* Starts a process when it is first needed. NULL for NULL. From any thread. */
hp_decoder *hp_decoder_new(hp_decoders *d);
void hp_decoder_free(hp_decoder *d); /* NULL is fine; after its readers are closed */

/* The process id of the decoder, 0 before it is needed; for tests. */
int32_t hp_decoder_pid(const hp_decoder *d);

#endif
