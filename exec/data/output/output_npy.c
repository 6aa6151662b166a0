/* output_npy.c - NumPy's .npy, version 1.0, and raw .bin: numbers as in memory, so PATH.part is the final
 * file. Format: numpy.lib.format, "Format Version 1.0". */
#include "exec/data/output/output_kind.h"

#include <string.h>

static int64_t header(const hp_output_layout *l, char text[HP_OUTPUT_HEADER]) {
    char shape[128] = "";
    for (int i = 0; i < l->n_shape; i++)
        snprintf(shape + strlen(shape), sizeof shape - strlen(shape), "%lld, ", (long long)l->shape[i]);
    char *dict = text + 10;
    const int used =
        snprintf(dict, HP_OUTPUT_HEADER - 10, "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }",
                 l->elem_bytes == 1 ? "|u1" : "<f4", shape);
    const int total = (10 + used + 1 + 63) / 64 * 64; /* numbers start at a multiple of 64 */
    HP_ASSERT(total <= HP_OUTPUT_HEADER);
    memset(dict + used, ' ', (size_t)(total - 10 - used));
    text[total - 1] = '\n';
    memcpy(text, "\x93NUMPY\x01", 8); /* version 1, 0 */
    text[8] = (char)((total - 10) & 0xff);
    text[9] = (char)((total - 10) >> 8);
    return total;
}

const hp_output_kind hp_output_npy = {.suffix = ".npy", .header = header};
const hp_output_kind hp_output_bin = {.suffix = ".bin"};
