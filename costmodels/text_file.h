/* text_file.h - reads a whole text file named by the user. */
#ifndef HP_TEXT_FILE_H
#define HP_TEXT_FILE_H

#include "base/arena.h"
#include "base/status.h"

/* what: "cost table"; hint: appended to the error for a missing or unsuitable file, "" or "; ...". Lives in
 * `arena`. Errors: HP_EDATA (not a text file, or too large). */
hp_status hp_text_file(hp_arena *arena, const char *path, const char *what, const char *hint, char **text,
                       hp_error *err);

#endif
