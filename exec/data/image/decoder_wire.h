/* decoder_wire.h - the protocol between a rank and its decoders; private to exec/data/image. */
#ifndef HP_DECODER_WIRE_H
#define HP_DECODER_WIRE_H

#include "exec/data/image/decoder.h"
#include "exec/data/image/image.h"

#include <limits.h>
#include <sys/types.h>

/* Maximum bytes of pixels per answer, or one row; larger windows take several answers. */
enum { HP_DECODER_CHUNK = 32 << 20 };
/* An image of at most this many bytes comes with the answer to open, and its file is closed. That is one
 * round trip instead of three, each of which takes about as long as decoding a small image
 * (docs/measurements.md). */
enum { HP_DECODER_SMALL = 64 << 10 };

typedef enum hp_decoder_verb {
    HP_DECODER_OPEN,
    HP_DECODER_ROWS,
    HP_DECODER_LEVEL,
    HP_DECODER_CLOSE
} hp_decoder_verb;

/* A request. Close has no answer. An attached descriptor is the memory for pixels from now
 * on, of `room` bytes. */
typedef struct hp_decoder_request {
    int32_t verb, id; /* id: of an open reader */
    hp_crop part;     /* rows */
    double shrink;    /* level */
    int64_t room;
    int32_t mask, slide, level, channels, n_band, band[HP_MAX_BANDS]; /* open: as hp_reader_options */
    char path[PATH_MAX];                                              /* open */
} hp_decoder_request;

typedef struct hp_decoder_answer {
    int32_t status, id;                    /* id -1: all pixels are included */
    int32_t h, w, c, type, bands, forward; /* open */
    uint32_t said;
    int32_t level;
    int64_t decoder_bytes; /* bytes that the reader holds now */
    char text[sizeof((hp_error *)NULL)->text];
} hp_decoder_answer;

/* --- decoder_wire.c: messages over a socket that preserves their boundaries --- */

/* `fd` -1: no descriptor. Returns 0, or -1 with errno. */
int hp_wire_send(int socket, const void *message, size_t bytes, int fd);
/* Returns the message's bytes, 0 at the end, -1 with errno. `fd` may be NULL: no descriptor is accepted. */
ssize_t hp_wire_receive(int socket, void *message, size_t most, int *fd);

/* --- decoder_serve.c --- */

/* Answers until the other end is closed. */
_Noreturn void hp_decoder_serve(int socket, const hp_decoder_limits *l);

/* --- confine.c: limits for this process from now on; see there --- */

void hp_confine(const hp_decoder_limits *l);
/* Grants this much processor time from now on, rounded up to whole seconds. */
void hp_confine_time(double seconds);

/* --- decoders.c --- */

/* Starts a decoder with the other end of `socket`. Errors: HP_EUNAVAIL. */
hp_status hp_decoders_spawn(hp_decoders *d, int *socket, int32_t *pid, hp_error *err);
/* Ends the decoder and returns waitpid's status, or -1. */
int hp_decoders_end(hp_decoders *d, int32_t pid);
const hp_decoder_limits *hp_decoders_limits(const hp_decoders *d);

/* --- decoder.c --- */

/* Changes when a decoder was replaced, which loses its readers. */
int64_t hp_decoder_generation(const hp_decoder *d);
/* Starts the process if necessary, sends the request and waits for the answer. The pulse beats while the
 * decoder works. Errors: those in the answer; HP_EDATA if the decoder dies or takes too long, naming `path`;
 * HP_EDEAD if it was killed. */
hp_status hp_decoder_ask(hp_decoder *d, hp_decoder_request *q, const char *path, const hp_pulse *pulse,
                         hp_decoder_answer *a, hp_error *err);
/* Memory for pixels of the next request's answer; NULL: out of memory. */
const uint8_t *hp_decoder_room(hp_decoder *d, size_t bytes);

#endif
