/* manifest.h - manifest.json, the last file of a checkpoint: it identifies the run and lists the contents
 * of the other files.
 *
 * It names no files, as rank r's is rank-r.safetensors beside it. It is untrusted input: the reader checks
 * its hash first, then every number. */
#ifndef HP_MANIFEST_H
#define HP_MANIFEST_H

#include "base/arena.h"
#include "checkpoints/disk.h"

#include <stdbool.h>

#define HP_MANIFEST "manifest.json"

enum { HP_MANIFEST_MOST = 64 << 20 /* bytes */ };

#define MEMBER_TEXT  const char *
#define MEMBER_WHOLE int64_t
#define MEMBER_REAL  double
typedef struct hp_manifest {
#define ITEM(type, name, rule, words) MEMBER_##type name;
#include "checkpoints/manifest.def"
#undef ITEM
    hp_chunks *file; /* per rank */
} hp_manifest;

/* JSON text, with a hash of everything in it; the caller frees it. */
char *hp_manifest_text(const hp_manifest *m);
/* Reads and checks a file. Errors: HP_EDATA. */
hp_status hp_manifest_read(hp_arena *arena, const char *path, hp_manifest *m, hp_error *err);

/* May a run that would write `mine` resume from `stored`? Errors: HP_EDATA naming the first
 * item that must agree. */
hp_status hp_manifest_same(const hp_manifest *stored, const hp_manifest *mine, hp_error *err);
/* Describes the other differences; "" if there are none. */
const char *hp_manifest_notes(hp_arena *arena, const hp_manifest *stored, const hp_manifest *mine);

#endif
