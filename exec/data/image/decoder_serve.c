/* decoder_serve.c - the decoder's side: readers in this process, by number. */
#include "exec/data/image/decoder_wire.h"
#include "exec/data/image/reader_kind.h"
#include "exec/data/image/reader_pool.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* For images, masks and an overview. */
enum { MOST_READERS = 2 * HP_POOL_READERS + 1 };

typedef struct server {
    hp_decoder_limits limits;
    hp_reader *reader[MOST_READERS];
    uint8_t *px; /* shared */
    size_t room;
} server;

static void close_file(server *s, int32_t id) {
    hp_reader_close(s->reader[id]);
    s->reader[id] = NULL;
}

/* Attaches the pixels of a small image. A failure to read is reported when pixels are requested. */
static void read_small(server *s, hp_decoder_answer *a) {
    hp_reader *r = s->reader[a->id];
    const int64_t pixel = (int64_t)hp_pixel_bytes(a->c, (hp_pixel_type)a->type),
                  bytes = (int64_t)a->h * a->w * pixel;
    if (bytes > HP_DECODER_SMALL || bytes > (int64_t)s->room) return;
    if (r->kind->rows(r, &(hp_crop){0, 0, a->h, a->w}, s->px, NULL) != HP_OK) return;
    close_file(s, a->id);
    a->id = -1;
}

static hp_status open_file(server *s, const hp_decoder_request *q, hp_decoder_answer *a, hp_error *err) {
    hp_reader_options o = {
        .mask = q->mask, .slide = q->slide, .level = q->level, .channels = q->channels, .n_band = q->n_band};
    memcpy(o.band, q->band, sizeof o.band);
    int id = 0;
    while (id < MOST_READERS && s->reader[id]) id++;
    HP_ASSERT(id < MOST_READERS);
    HP_TRY(hp_reader_open(q->path, &o, &s->reader[id], err));
    const hp_pixels size = hp_reader_size(s->reader[id]);
    a->id = id;
    a->h = size.h, a->w = size.w, a->c = size.c, a->type = (int32_t)size.type;
    a->bands = hp_reader_bands(s->reader[id]), a->said = hp_reader_said(s->reader[id]);
    a->forward = hp_reader_is_sequential(s->reader[id]);
    a->decoder_bytes = (int64_t)s->reader[id]->decoder_bytes;
    if (!q->slide) read_small(s, a);
    return HP_OK;
}

static hp_status read_rows(const server *s, hp_reader *r, const hp_crop *part, hp_error *err) {
    const size_t bytes =
        (size_t)hp_crop_rows(part) * (size_t)hp_crop_columns(part) * hp_pixel_bytes(r->kept.c, r->kept.type);
    HP_ASSERT(bytes <= s->room);
    hp_confine_time(s->limits.cpu_s + (double)part->y1 * r->kept.w / s->limits.pixels_per_s);
    return r->kind->rows(r, part, s->px, err);
}

static hp_reader *reader_of(const server *s, int32_t id) {
    HP_ASSERT(id >= 0 && id < MOST_READERS && s->reader[id]);
    return s->reader[id];
}

static hp_status act(server *s, const hp_decoder_request *q, hp_decoder_answer *a, hp_error *err) {
    hp_confine_time(s->limits.cpu_s);
    if (q->verb == HP_DECODER_OPEN) return open_file(s, q, a, err);
    if (q->verb == HP_DECODER_CLOSE) {
        close_file(s, q->id);
        return HP_OK;
    }
    hp_reader *r = reader_of(s, q->id);
    if (q->verb == HP_DECODER_LEVEL) a->level = hp_reader_level(r, q->shrink);
    if (q->verb == HP_DECODER_ROWS) HP_TRY(read_rows(s, r, &q->part, err));
    a->decoder_bytes = (int64_t)r->decoder_bytes;
    return HP_OK;
}

static void take_room(server *s, int fd, int64_t bytes) {
    if (s->px) munmap(s->px, s->room);
    s->room = (size_t)bytes;
    s->px = mmap(NULL, s->room, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    HP_ASSERT(s->px != MAP_FAILED);
    close(fd);
}

_Noreturn void hp_decoder_serve(int socket, const hp_decoder_limits *l) {
    server s = {.limits = *l};
    static hp_decoder_request q;
    hp_confine(l);
    for (int fd; hp_wire_receive(socket, &q, sizeof q, &fd) > 0;) {
        hp_error err = {0};
        hp_decoder_answer a = {.id = q.id};
        if (fd >= 0) take_room(&s, fd, q.room);
        a.status = (int32_t)act(&s, &q, &a, &err);
        memcpy(a.text, err.text, sizeof a.text);
        const size_t bytes = offsetof(hp_decoder_answer, text) + strlen(a.text) + 1;
        if (q.verb != HP_DECODER_CLOSE && hp_wire_send(socket, &a, bytes, -1) != 0) break;
    }
    _exit(0);
}
