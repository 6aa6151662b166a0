/* trace_text.c - cleans untrusted strings; UTF-8 is validated as in RFC 3629 (no overlong
 * forms, no surrogates). */
#include "traces/trace_text.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { TEXT_MAX = 500 };

typedef struct utf8_form {
    unsigned char mask, lead; /* first byte & mask == lead */
    int length;
    uint32_t least; /* smallest code point that needs this length */
} utf8_form;

static const utf8_form forms[] = {
    {0x80, 0x00, 1, 0}, {0xe0, 0xc0, 2, 0x80}, {0xf0, 0xe0, 3, 0x800}, {0xf8, 0xf0, 4, 0x10000}};

/* Decodes one code point; returns its length in bytes, 0 if malformed. */
static int decode(const unsigned char *s, uint32_t *code) {
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        const utf8_form *f = &forms[i];
        if ((s[0] & f->mask) != f->lead) continue;
        uint32_t c = s[0] & (unsigned char)~f->mask;
        for (int k = 1; k < f->length; k++) {
            if ((s[k] & 0xc0) != 0x80) return 0; /* also stops at the terminating zero */
            c = c << 6 | (s[k] & 0x3f);
        }
        *code = c;
        return c < f->least || c > 0x10ffff || (c >= 0xd800 && c < 0xe000) ? 0 : f->length;
    }
    return 0;
}

typedef struct code_range {
    uint32_t first, last;
} code_range;

/* Controls; line and paragraph separators, bidirectional marks and overrides (Unicode TR 36); the byte-order
 * mark. */
static const code_range unsafe[] = {{0, 0x1f},        {0x7f, 0x9f},     {0x200e, 0x200f},
                                    {0x2028, 0x202e}, {0x2066, 0x2069}, {0xfeff, 0xfeff}};

static bool is_unsafe(uint32_t c) {
    for (size_t i = 0; i < sizeof unsafe / sizeof unsafe[0]; i++)
        if (c >= unsafe[i].first && c <= unsafe[i].last) return true;
    return false;
}

const char *hp_text_clean(hp_arena *arena, const char *text) {
    const unsigned char *s = (const unsigned char *)text;
    char out[TEXT_MAX + 1];
    int n = 0;
    while (*s) {
        uint32_t code = 0;
        const int length = decode(s, &code);
        const bool keep = length > 0 && !is_unsafe(code);
        const int bytes = keep ? length : 1;
        if (n + bytes > TEXT_MAX) break;
        if (keep)
            memcpy(out + n, s, (size_t)length);
        else
            out[n] = '?';
        n += bytes;
        s += length > 0 ? length : 1;
    }
    out[n] = '\0';
    return hp_arena_strdup(arena, out);
}

void hp_text_csv(FILE *f, const char *text) {
    fputc('"', f);
    if (text[0] && strchr("=+-@", text[0])) fputc('\'', f);
    for (const char *s = text; *s; s++) {
        if (*s == '"') fputc('"', f);
        fputc(*s, f);
    }
    fputc('"', f);
}
