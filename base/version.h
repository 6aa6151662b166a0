/* version.h - release and commit, the same in both executables. */
#ifndef HP_VERSION_H
#define HP_VERSION_H

const char *hp_version(void); /* "0.1.0" */
const char *hp_commit(void);  /* "1a2b3c4d5e6f"; "unknown" outside a git checkout */

#endif
