/* tiff_samples.c - a table of conversions of TIFF's samples; see tiff_samples.h. */
#include "exec/data/image/tiff_samples.h"

#include "exec/base/half.h"

/* Unsigned, packed from a byte's highest bit down. */
static uint32_t packed_at(const hp_tiff_row *r, size_t i) {
    const uint8_t *bytes = r->row;
    const size_t bits = (size_t)r->bits, from = i * bits;
    uint32_t v = 0;
    for (size_t b = from; b < from + bits; b++) v = v << 1 | (bytes[b / 8] >> (7 - b % 8) & 1u);
    return v;
}

static uint32_t largest(int32_t bits) {
    return (uint32_t)((UINT64_C(1) << bits) - 1);
}

#define CONVERT(name, to_type, value)                                                                        \
    static void name(const hp_tiff_row *r) {                                                                 \
        to_type *to = r->to;                                                                                 \
        for (size_t i = 0, at = r->first; i < r->n; i++, at += r->step, to += r->to_step)                    \
            *to = (to_type)(value);                                                                          \
    }
#define AT(type) (((const type *)r->row)[at])

CONVERT(from_few, uint8_t, packed_at(r, at) * (255 / largest(r->bits)))
CONVERT(from_u8, uint8_t, AT(uint8_t))
CONVERT(from_u16, uint16_t, AT(uint16_t))
CONVERT(from_packed, float, (double)packed_at(r, at) / (double)largest(r->bits))
CONVERT(from_u32, float, (double)AT(uint32_t) / UINT32_MAX)
CONVERT(from_i8, float, (double)AT(int8_t) / INT8_MAX)
CONVERT(from_i16, float, (double)AT(int16_t) / INT16_MAX)
CONVERT(from_i32, float, (double)AT(int32_t) / INT32_MAX)
CONVERT(from_half, float, from_f16(AT(uint16_t)))
CONVERT(from_f32, float, AT(float))
CONVERT(from_f64, float, AT(double))

enum { UNSIGNED = 1, SIGNED = 2, FLOATS = 3, UNDEFINED = 4 };

static const hp_tiff_samples TABLE[] = {
    {1, 2, UNSIGNED, HP_SAMPLE_U8, false, false, from_few},
    {4, 4, UNSIGNED, HP_SAMPLE_U8, false, false, from_few},
    {8, 8, UNSIGNED, HP_SAMPLE_U8, false, false, from_u8},
    {16, 16, UNSIGNED, HP_SAMPLE_U16, false, false, from_u16},
    {3, 15, UNSIGNED, HP_SAMPLE_F32, true, false, from_packed}, /* the rows above take precedence */
    {32, 32, UNSIGNED, HP_SAMPLE_F32, true, true, from_u32},
    {8, 8, SIGNED, HP_SAMPLE_F32, true, false, from_i8},
    {16, 16, SIGNED, HP_SAMPLE_F32, true, false, from_i16},
    {32, 32, SIGNED, HP_SAMPLE_F32, true, true, from_i32},
    {16, 16, FLOATS, HP_SAMPLE_F32, false, false, from_half},
    {32, 32, FLOATS, HP_SAMPLE_F32, false, false, from_f32},
    {64, 64, FLOATS, HP_SAMPLE_F32, false, true, from_f64},
};

const hp_tiff_samples *hp_tiff_samples_of(int32_t bits, int32_t format) {
    const int32_t as = format == UNDEFINED ? UNSIGNED : format;
    for (size_t i = 0; i < sizeof TABLE / sizeof *TABLE; i++)
        if (bits >= TABLE[i].bits_from && bits <= TABLE[i].bits_to && as == TABLE[i].format) return &TABLE[i];
    return NULL;
}

void hp_tiff_samples_invert(hp_pixel_type type, void *px, size_t n, size_t step) {
    for (size_t i = 0; i < n * step; i += step)
        if (type == HP_SAMPLE_U8)
            ((uint8_t *)px)[i] = (uint8_t)(255 - ((uint8_t *)px)[i]);
        else
            ((uint16_t *)px)[i] = (uint16_t)(65535 - ((uint16_t *)px)[i]);
}
