/* db_content.h - a checksum over what the tables of a database hold, whatever the order and place of rows in its file: a bit that
 * another program or a disk has changed is noticed before anything is read. */
#ifndef HP_DB_CONTENT_H
#define HP_DB_CONTENT_H

#include <sqlite3.h>
#include <stdbool.h>

enum { HP_DB_CONTENT_TEXT = 17 };

/* Of all rows of all tables but the checksum itself: 16 hexadecimal digits. False: they cannot be read. Reads all of it. */
bool hp_db_content(sqlite3 *sql, char out[HP_DB_CONTENT_TEXT]);

/* Notes it in table meta (key `content`), within the transaction. False: it cannot be written. */
bool hp_db_content_note(sqlite3 *sql);
/* Is what is noted what there is? The note `none` is that of a file that was changed by hand, on purpose: true. */
bool hp_db_content_holds(sqlite3 *sql);

#endif
