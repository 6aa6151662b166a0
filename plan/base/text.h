/* text.h - a text of a fixed room put together from pieces; what does not fit is cut off. */
#ifndef HP_TEXT_H
#define HP_TEXT_H

#include <stddef.h>

typedef struct hp_text {
    char *out; /* ends with a zero */
    size_t n;  /* bytes, the zero included */
} hp_text;

void hp_text_add(hp_text t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
