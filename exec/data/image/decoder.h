/* decoder.h - decodes image files in separate processes with limits. A file that crashes, loops or fills
 * memory costs only its decoder; the rank gets an error that names the file.
 *
 * A rank starts one process before it has threads and before MPI_Init, as neither survives a fork. That
 * process only forks decoders on request, one for each reading thread, so a decoder that dies can be replaced
 * at any time. A decoder opens files by path and does what a reader in this process would do (reader_kind.h):
 * open, rows, level, close. Pixels come through shared memory that the rank made and the decoder cannot
 * shrink. The rank checks everything a decoder answers.
 *
 * All of them end with the rank, however it ends (PR_SET_PDEATHSIG). confine.c restricts what they may do. */
#ifndef HP_DECODER_H
#define HP_DECODER_H

#include "exec/data/image/pulse.h"
#include "base/status.h"

#include <stdint.h>

typedef struct hp_decoders hp_decoders; /* the process that starts decoders */
typedef struct hp_decoder hp_decoder;   /* one decoder, for one thread at a time */

typedef struct hp_decoder_limits {
    int64_t memory_bytes; /* address space beyond what a process has at its start */
    double cpu_s;         /* processor time for one call, */
    double pixels_per_s;  /* plus time for the pixels between the image's top and the last row requested */
    double silent_s;      /* time without using a processor and without an answer */
} hp_decoder_limits;

/* 3 GiB: HP_MAX_PIXELS (image.h) at 7 bytes, plus a library's own 1 GiB. 30 s, and 2 million pixels per
 * second: the slowest format, interlaced PNG, reaches some 10 million on a busy core (docs/measurements.md).
 * 60 s: a file system's failover may take that long. */
hp_decoder_limits hp_decoder_limits_default(void);

/* Starts the process. Call before MPI_Init, with a single thread. Errors: HP_EUNAVAIL. */
hp_status hp_decoders_start(const hp_decoder_limits *l, hp_decoders **d, hp_error *err);
void hp_decoders_stop(hp_decoders *d); /* accepts NULL; call after all decoders are freed */

/* Makes a decoder whose process starts at first use. Returns NULL for NULL. Thread-safe. */
hp_decoder *hp_decoder_new(hp_decoders *d);
void hp_decoder_free(hp_decoder *d); /* accepts NULL; call after its readers are closed */

/* Process id of the decoder, 0 before first use. For tests. */
int32_t hp_decoder_pid(const hp_decoder *d);

#endif
