/* sha256.h - the digest by which a content security policy names a style or a script. */
#ifndef HP_SHA256_H
#define HP_SHA256_H

#include <stddef.h>

/* SHA-256 (FIPS 180-4, section 6.2) of the texts, one after another, in base64 (RFC 4648, section 4). */
enum { HP_SHA256_TEXT = 45 };
const char *hp_sha256_base64(const char *const *text, int n, char out[HP_SHA256_TEXT]);

#endif
