/* make_images.c - PNG, JPEG and TIFF files written by the formats' own libraries, for the
 * decoders to read back. */
#include "tests/support/exec/make_images.h"

void make_png(const char *path, int h, int w, int c, const uint8_t *px) {
    static const png_uint_32 formats[] = {0, PNG_FORMAT_GRAY, PNG_FORMAT_GA, PNG_FORMAT_RGB, PNG_FORMAT_RGBA};
    png_image png = {.version = PNG_IMAGE_VERSION, .format = formats[c]};
    png.width = (png_uint_32)w;
    png.height = (png_uint_32)h;
    if (!png_image_write_to_file(&png, path, 0, px, 0, NULL)) abort();
}

void make_png_as(const char *path, int h, int w, int type, int bits, bool interlaced, const uint8_t *px) {
    FILE *f = fopen(path, "wb");
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(png);
    if (!f || !info || setjmp(png_jmpbuf(png))) abort();
    png_init_io(png, f);
    png_set_IHDR(png, info, (png_uint_32)w, (png_uint_32)h, bits, type,
                 interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
                 PNG_FILTER_TYPE_DEFAULT);
    png_color palette[256];
    for (int v = 0; v < 256; v++)
        palette[v] = (png_color){(png_byte)(v * 16), (png_byte)(v * 8), (png_byte)v};
    if (type == PNG_COLOR_TYPE_PALETTE) png_set_PLTE(png, info, palette, 1 << bits);
    png_write_info(png, info);
    png_set_packing(png);
    const int c = png_get_channels(png, info), passes = png_set_interlace_handling(png);
    for (int pass = 0; pass < passes; pass++)
        for (int y = 0; y < h; y++) png_write_row(png, px + y * w * c * (bits == 16 ? 2 : 1));
    png_write_end(png, NULL);
    png_destroy_write_struct(&png, &info);
    fclose(f);
}

void make_png_blank(const char *path, int h, int w) {
    FILE *f = fopen(path, "wb");
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(png);
    png_bytep row = calloc(1, (size_t)w / 8 + 1);
    if (!f || !info || !row || setjmp(png_jmpbuf(png))) abort();
    png_init_io(png, f);
    png_set_IHDR(png, info, (png_uint_32)w, (png_uint_32)h, 1, PNG_COLOR_TYPE_GRAY, PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_set_compression_level(png, 1);
    png_write_info(png, info);
    for (int y = 0; y < h; y++) png_write_row(png, row);
    png_write_end(png, NULL);
    png_destroy_write_struct(&png, &info);
    free(row);
    fclose(f);
}

void make_jpeg_as(const char *path, int h, int w, int c, const uint8_t *px, int quality, bool progressive) {
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
    if (progressive) jpeg_simple_progression(&j);
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

void make_jpeg(const char *path, int h, int w, int c, const uint8_t *px, int quality) {
    make_jpeg_as(path, h, w, c, px, quality, false);
}

void make_tiff(const char *path, int h, int w, int c, const uint8_t *px, int bits, int white) {
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

void make_tiff_tiled_as(const char *path, const char *mode, int h, int w, int c, const uint8_t *px,
                        int tile) {
    TIFF *t = TIFFOpen(path, mode);
    uint8_t *buffer = calloc((size_t)tile * (size_t)tile, (size_t)c);
    if (!t || !buffer) abort();
    TIFFSetField(t, TIFFTAG_IMAGEWIDTH, (uint32_t)w);
    TIFFSetField(t, TIFFTAG_IMAGELENGTH, (uint32_t)h);
    TIFFSetField(t, TIFFTAG_SAMPLESPERPIXEL, c);
    TIFFSetField(t, TIFFTAG_BITSPERSAMPLE, 8);
    TIFFSetField(t, TIFFTAG_COMPRESSION, COMPRESSION_ADOBE_DEFLATE);
    TIFFSetField(t, TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG);
    TIFFSetField(t, TIFFTAG_PHOTOMETRIC, c == 3 ? PHOTOMETRIC_RGB : PHOTOMETRIC_MINISBLACK);
    TIFFSetField(t, TIFFTAG_TILEWIDTH, (uint32_t)tile);
    TIFFSetField(t, TIFFTAG_TILELENGTH, (uint32_t)tile);
    for (int y0 = 0; y0 < h; y0 += tile)
        for (int x0 = 0; x0 < w; x0 += tile) {
            for (int y = y0; y < h && y < y0 + tile; y++)
                memcpy(buffer + (y - y0) * tile * c, px + (y * w + x0) * c,
                       (size_t)((w - x0 < tile ? w - x0 : tile) * c));
            if (TIFFWriteTile(t, buffer, (uint32_t)x0, (uint32_t)y0, 0, 0) < 0) abort();
        }
    free(buffer);
    TIFFClose(t);
}

void make_tiff_tiled(const char *path, int h, int w, int c, const uint8_t *px, int tile) {
    make_tiff_tiled_as(path, "w", h, w, c, px, tile);
}
