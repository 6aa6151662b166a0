/* output_kind.h - the interface that an output format implements; private to exec/data. */
#ifndef HP_OUTPUT_KIND_H
#define HP_OUTPUT_KIND_H

#include "exec/data/output/output.h"

#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

/* Layout of PATH.part: (n, h, w, c) dense, after `header_bytes`. */
typedef struct hp_output_layout {
    int64_t dim[HP_AXES]; /* c is 1 with classes */
    int64_t header_bytes;
    int32_t elem_bytes; /* 4: float32; 1: uint8 */
    int32_t n_shape;    /* the shape stored in the file */
    int64_t shape[HP_AXES];
} hp_output_layout;

enum { HP_OUTPUT_HEADER = 256 /* size limit of a header */ };

typedef struct hp_output_kind {
    const char *suffix;
    /* Checks that the format can represent the output. NULL: it can represent any. */
    hp_status (*check)(const hp_output_spec *s, hp_error *err);
    /* Writes the header before the numbers; returns its length. NULL: none. */
    int64_t (*header)(const hp_output_layout *l, char text[HP_OUTPUT_HEADER]);
    /* Reads the numbers from `part` and writes the file at `tmp`. NULL: PATH.part is the final file. */
    hp_status (*convert)(const hp_output_layout *l, int part, const char *tmp, hp_error *err);
} hp_output_kind;

extern const hp_output_kind hp_output_npy, hp_output_json, hp_output_tiff, hp_output_bin;

/* output.c: the format of the name's suffix; NULL: unknown. */
const hp_output_kind *hp_output_kind_of(const char *path);
/* The layout of PATH.part for an output. */
hp_output_layout hp_output_layout_of(const hp_output_spec *s);
/* Name of PATH.part. Errors: HP_ECREATE (too long). */
hp_status hp_output_part_name(const hp_output_spec *s, char name[4096], hp_error *err);
/* "writing PATH failed: ...; free some space or give another folder" from errno, HP_EIO. */
hp_status hp_output_failed(const char *path, hp_error *err);

/* Reads `bytes` bytes at `offset`. Errors: HP_EIO. */
hp_status hp_output_read(int part, void *to, size_t bytes, int64_t offset, hp_error *err);

#endif
