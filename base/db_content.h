/* db_content.h - checksum over the content of a database's tables, independent of row order and file layout.
 * It detects a bit flipped by another program or a disk before any data is used. */
#ifndef HP_DB_CONTENT_H
#define HP_DB_CONTENT_H

#include <sqlite3.h>
#include <stdbool.h>

enum { HP_DB_CONTENT_TEXT = 17 };

/* Hashes all rows of all tables except the checksum itself to 16 hexadecimal digits. Reads the whole
 * database. Returns false if it cannot be read. */
bool hp_db_content(sqlite3 *sql, char out[HP_DB_CONTENT_TEXT]);

/* Stores the checksum in table meta (key `content`), within the transaction. Returns false if it cannot be
 * written. */
bool hp_db_content_note(sqlite3 *sql);
/* Does the stored checksum match the content? `none` marks a file edited by hand on purpose and always
 * matches. */
bool hp_db_content_holds(sqlite3 *sql);

#endif
