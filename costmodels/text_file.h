/* text_file.h - a whole text file, as a user names it. */
#ifndef HP_TEXT_FILE_H
#define HP_TEXT_FILE_H

#include "base/arena.h"
#include "base/status.h"

/* what: "cost table"; hint: added to the message of a file that is missing or none, "" or "; ...". Lives in `arena`.
 * Errors: HP_EDATA (not a text file, or too large). */
hp_status hp_text_file(hp_arena *arena, const char *path, const char *what, const char *hint, char **text,
                       hp_error *err);

#endif
