/* bench_decode.c - the cost of decoding files in a process of their own. Opens each file, reads it whole and
 * closes it, in turns by a decoder and in this process. usage: bench_decode [ROUNDS]
 *
 * The figure is the median over the rounds of the ratio of times, with the middle half. One reading thread:
 * the other process waits while this one works, and the other way round, so that one free core is enough. */
#include "exec/data/image/reader.h"
#include "base/clock.h"
#include "base/rng.h"
#include "tests/support/exec/make_images.h"
#include "tests/support/plan/data_files.h"

enum { MOST_FILES = 400, MOST_ROUNDS = 200, LARGE = 2048 };

typedef struct set {
    const char *name, *end;
    int side, files;
    bool interlaced;
} set;

static const set SETS[] = {{"PNG 32 x 32", "png", 32, 400, false},
                           {"JPEG 256 x 256", "jpg", 256, 100, false},
                           {"PNG 1024 x 1024", "png", 1024, 4, false},
                           {"TIFF 2048 x 2048", "tif", LARGE, 2, false},
                           {"PNG 2048 x 2048, interlaced", "png", LARGE, 1, true}};
enum { N_SETS = sizeof SETS / sizeof *SETS };

static uint8_t px[LARGE * LARGE * 3];

/* Slopes with a little noise, as of a photograph. */
static void draw(int side) {
    for (int y = 0; y < side; y++)
        for (int x = 0; x < side; x++)
            for (int c = 0; c < 3; c++) {
                const int at = (y * side + x) * 3 + c;
                px[at] = (uint8_t)(64 + (x * (c + 1) + 2 * y) * 120 / (5 * side) +
                                   (int)hp_rng_below(1, 1, (uint64_t)at, 9));
            }
}

static void make(const set *s, char path[][SCRATCH_PATH]) {
    draw(s->side);
    for (int i = 0; i < s->files; i++) {
        char name[64];
        snprintf(name, sizeof name, "%d-%d-%d.%s", s->side, (int)s->interlaced, i, s->end);
        snprintf(path[i], SCRATCH_PATH, "%s", scratch_path(name));
        if (s->end[0] == 'j') make_jpeg(path[i], s->side, s->side, 3, px, 90);
        if (s->end[0] == 't') make_tiff(path[i], s->side, s->side, 3, px, 8, 0);
        if (s->end[0] == 'p')
            make_png_as(path[i], s->side, s->side, PNG_COLOR_TYPE_RGB, 8, s->interlaced, px);
    }
}

static double read_s(const set *s, char path[][SCRATCH_PATH], hp_decoder *d) {
    const hp_reader_options o = {.decoder = d};
    const double start_s = hp_now_s();
    for (int i = 0; i < s->files; i++) {
        hp_reader *r;
        hp_pixels view;
        hp_error err = {0};
        if (hp_reader_open(path[i], &o, &r, &err) != HP_OK ||
            hp_reader_window(r, NULL, &view, &err) != HP_OK) {
            fprintf(stderr, "%s\n", err.text);
            exit(1);
        }
        hp_reader_close(r);
    }
    return hp_now_s() - start_s;
}

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double part(double *v, int n, double share) {
    qsort(v, (size_t)n, sizeof *v, by_value);
    return v[(int)(share * (n - 1))];
}

static void measure(const set *s, hp_decoder *d, int rounds) {
    static char path[MOST_FILES][SCRATCH_PATH];
    static double here[MOST_ROUNDS], there[MOST_ROUNDS], ratio[MOST_ROUNDS];
    make(s, path);
    read_s(s, path, d);
    for (int k = 0; k < rounds; k++) {
        if (k % 2) here[k] = read_s(s, path, NULL);
        there[k] = read_s(s, path, d);
        if (k % 2 == 0) here[k] = read_s(s, path, NULL);
        ratio[k] = there[k] / here[k];
    }
    const double n = s->files, mpix = 1e-6 * n * s->side * s->side;
    printf("%-28s %8.1f us here, %8.1f us by a decoder, each (%.0f and %.0f Mpixel/s): %.3f times, middle "
           "half %.3f to %.3f\n",
           s->name, 1e6 * part(here, rounds, .5) / n, 1e6 * part(there, rounds, .5) / n,
           mpix / part(here, rounds, .5), mpix / part(there, rounds, .5), part(ratio, rounds, .5),
           part(ratio, rounds, .25), part(ratio, rounds, .75));
}

int main(int argc, char **argv) {
    const int asked = argc > 1 ? atoi(argv[1]) : 15, rounds = asked < 1             ? 1
                                                              : asked > MOST_ROUNDS ? MOST_ROUNDS
                                                                                    : asked;
    const hp_decoder_limits limits = hp_decoder_limits_default();
    hp_decoders *of;
    hp_error err = {0};
    void *state = NULL;
    if (hp_decoders_start(&limits, &of, &err) != HP_OK || scratch_setup(&state) != 0) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    hp_decoder *d = hp_decoder_new(of);
    for (int i = 0; i < N_SETS; i++) measure(&SETS[i], d, rounds);
    hp_decoder_free(d);
    hp_decoders_stop(of);
    return scratch_teardown(&state);
}
