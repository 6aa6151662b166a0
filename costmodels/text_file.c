/* text_file.c - reads a whole text file. */
#include "costmodels/text_file.h"

#include "base/input.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

enum { MAX_BYTES = 64 << 20 }; /* rejects larger files; no cost table has a million rows */

hp_status hp_text_file(hp_arena *arena, const char *path, const char *what, const char *hint, char **text,
                       hp_error *err) {
    FILE *f = hp_input_fopen(path);
    if (!f) return hp_fail(err, HP_EDATA, "cannot read %s %s: %s%s", what, path, strerror(errno), hint);
    struct stat st;
    if (fstat(fileno(f), &st) != 0 || !S_ISREG(st.st_mode) || st.st_size > MAX_BYTES) {
        fclose(f);
        return hp_fail(err, HP_EDATA, "%s is not a %s (a text file of at most %d MB)", path, what,
                       MAX_BYTES >> 20);
    }
    *text = hp_arena_alloc(arena, (size_t)st.st_size + 1);
    const size_t got = fread(*text, 1, (size_t)st.st_size, f);
    fclose(f);
    if (strlen(*text) == got) return HP_OK;
    return hp_fail(err, HP_EDATA, "%s contains zero bytes, so it is not a %s%s", path, what, hint);
}
