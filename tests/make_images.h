/* make_images.h - PNG, JPEG and TIFF files written by the formats' own libraries, for the decoders to read
 * back. */
#ifndef TESTS_MAKE_IMAGES_H
#define TESTS_MAKE_IMAGES_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>
#include <png.h>
#include <tiffio.h>

/* c: 1 grey, 2 grey + alpha, 3 RGB, 4 RGBA. */
static inline void make_png(const char *path, int h, int w, int c, const uint8_t *px) {
    static const png_uint_32 formats[] = {0, PNG_FORMAT_GRAY, PNG_FORMAT_GA, PNG_FORMAT_RGB, PNG_FORMAT_RGBA};
    png_image png = {.version = PNG_IMAGE_VERSION, .format = formats[c]};
    png.width = (png_uint_32)w;
    png.height = (png_uint_32)h;
    if (!png_image_write_to_file(&png, path, 0, px, 0, NULL)) abort();
}

static inline void make_jpeg(const char *path, int h, int w, int c, const uint8_t *px, int quality) {
    struct jpeg_compress_struct j;
    struct jpeg_error_mgr mgr;
    FILE *f = fopen(path, "wb");
    if (!f) abort();
    j.err = jpeg_std_error(&mgr);
    jpeg_create_compress(&j);
    jpeg_stdio_dest(&j, f);
    j.image_width = (JDIMENSION)w;
    j.image_height = (JDIMENSION)h;
    j.input_components = c;
    j.in_color_space = c == 1 ? JCS_GRAYSCALE : c == 3 ? JCS_RGB : JCS_CMYK;
    jpeg_set_defaults(&j);
    jpeg_set_quality(&j, quality, TRUE);
    jpeg_start_compress(&j, TRUE);
    while (j.next_scanline < j.image_height) {
        uint8_t row[4096];
        memcpy(row, px + (size_t)j.next_scanline * (size_t)(w * c), (size_t)(w * c));
        JSAMPROW rows = row;
        jpeg_write_scanlines(&j, &rows, 1);
    }
    jpeg_finish_compress(&j);
    jpeg_destroy_compress(&j);
    fclose(f);
}

/* bits 8 or 16 (each 8-bit value v stored as 257 v); white: 0 means white. */
static inline void make_tiff(const char *path, int h, int w, int c, const uint8_t *px, int bits, int white) {
    TIFF *t = TIFFOpen(path, "w");
    if (!t) abort();
    TIFFSetField(t, TIFFTAG_IMAGEWIDTH, (uint32_t)w);
    TIFFSetField(t, TIFFTAG_IMAGELENGTH, (uint32_t)h);
    TIFFSetField(t, TIFFTAG_SAMPLESPERPIXEL, c);
    TIFFSetField(t, TIFFTAG_BITSPERSAMPLE, bits);
    TIFFSetField(t, TIFFTAG_COMPRESSION, COMPRESSION_LZW);
    TIFFSetField(t, TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG);
    TIFFSetField(t, TIFFTAG_PHOTOMETRIC,
                 c == 3  ? PHOTOMETRIC_RGB
                 : white ? PHOTOMETRIC_MINISWHITE
                         : PHOTOMETRIC_MINISBLACK);
    TIFFSetField(t, TIFFTAG_ROWSPERSTRIP, 5u);
    for (int y = 0; y < h; y++) {
        uint16_t row[4096];
        for (int i = 0; i < w * c; i++) {
            const uint8_t v = px[y * w * c + i];
            if (bits == 16)
                row[i] = (uint16_t)(v * 257);
            else
                ((uint8_t *)row)[i] = v;
        }
        if (TIFFWriteScanline(t, row, (uint32_t)y, 0) != 1) abort();
    }
    TIFFClose(t);
}

#endif
