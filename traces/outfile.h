/* outfile.h - an output file that is complete or absent: written under a temporary name and renamed at the
 * end; or, as "-", stdout. */
#ifndef HP_OUTFILE_H
#define HP_OUTFILE_H

#include "base/new_file.h"

#include <stdio.h>

typedef struct hp_outfile {
    FILE *f;
    char path[HP_NEW_FILE_PATH], tmp[HP_NEW_FILE_TEMPORARY];
} hp_outfile;

/* Errors: HP_ECREATE, also where `path` is a database. */
hp_status hp_outfile_open(const char *path, hp_outfile *o, hp_error *err);
/* Flushes, syncs, renames. Errors: HP_EIO (disk full); an earlier file stays. Closes in either case. */
hp_status hp_outfile_commit(hp_outfile *o, hp_error *err);
/* Removes what was written. Safe after commit and on a zeroed hp_outfile. */
void hp_outfile_discard(hp_outfile *o);

#endif
