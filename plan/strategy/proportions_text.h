/* proportions_text.h - share, rows and cols as strategies write them: share=3:1, rows=40:24, or `even`. */
#ifndef HP_PROPORTIONS_TEXT_H
#define HP_PROPORTIONS_TEXT_H

#include "plan/strategy/strategy.h"

/* `key` is named in errors: HP_EUSAGE. */
hp_status hp_proportions_read(const char *key, const char *value, hp_proportions *w, hp_error *err);
/* `out` holds HP_STRATEGY_TEXT bytes. */
void hp_proportions_write(const hp_proportions *w, char *out);

#endif
