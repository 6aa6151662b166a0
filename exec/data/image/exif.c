/* exif.c - reads Exif's Orientation (tag 0x0112 of the first directory). Exif 2.3 embeds a TIFF file: a byte
 * order, 42, the offset of the directory; there the number of entries, then twelve bytes each. */
#include "exec/data/image/reader_kind.h"

#include <string.h>

static uint32_t number(const uint8_t *at, int bytes, bool little) {
    uint32_t v = 0;
    for (int i = 0; i < bytes; i++) v |= (uint32_t)at[i] << 8 * (little ? i : bytes - 1 - i);
    return v;
}

int32_t hp_exif_orientation(const uint8_t *exif, size_t bytes) {
    enum { TAG = 0x0112, SHORT = 3, ENTRY = 12 };
    if (bytes < 8 || (memcmp(exif, "II*\0", 4) != 0 && memcmp(exif, "MM\0*", 4) != 0)) return 0;
    const bool little = exif[0] == 'I';
    const size_t at = number(exif + 4, 4, little);
    if (at > bytes - 2) return 0;
    const size_t entries = number(exif + at, 2, little);
    for (size_t i = 0; i < entries && at + 2 + (i + 1) * ENTRY <= bytes; i++) {
        const uint8_t *e = exif + at + 2 + i * ENTRY;
        if (number(e, 2, little) != TAG || number(e + 2, 2, little) != SHORT) continue;
        const uint32_t v = number(e + 8, 2, little);
        return v >= 1 && v <= 8 ? (int32_t)v : 0;
    }
    return 0;
}
