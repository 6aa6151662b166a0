/* make_images.h - PNG, JPEG and TIFF files written by the formats' own libraries, for the decoders to read
 * back. */
#ifndef HP_TESTS_MAKE_IMAGES_H
#define HP_TESTS_MAKE_IMAGES_H

#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <jpeglib.h>
#include <png.h>
#include <tiffio.h>

/* c: 1 grey, 2 grey + alpha, 3 RGB, 4 RGBA. */
void make_png(const char *path, int h, int w, int c, const uint8_t *px);

/* Any PNG colour type and bit depth; `px`: one byte per channel; a palette has grey levels v*16, v*8, v. */
void make_png_as(const char *path, int h, int w, int type, int bits, bool interlaced, const uint8_t *px);

/* A black 1-bit grey image: even a large one is a small file. */
void make_png_blank(const char *path, int h, int w);
void make_jpeg_as(const char *path, int h, int w, int c, const uint8_t *px, int quality, bool progressive);
void make_jpeg(const char *path, int h, int w, int c, const uint8_t *px, int quality);

/* bits 8 or 16 (each 8-bit value v stored as 257 v); white: 0 means white. */
void make_tiff(const char *path, int h, int w, int c, const uint8_t *px, int bits, int white);

/* Tiles of `tile` x `tile` (a multiple of 16), 8 bits; mode "w8": BigTIFF. */
void make_tiff_tiled_as(const char *path, const char *mode, int h, int w, int c, const uint8_t *px, int tile);
void make_tiff_tiled(const char *path, int h, int w, int c, const uint8_t *px, int tile);

#endif
