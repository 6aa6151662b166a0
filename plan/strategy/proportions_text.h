/* proportions_text.h - share, rows and cols as strategies write them: share=3:1, rows=40:24, or `even`. */
#ifndef HP_PROPORTIONS_TEXT_H
#define HP_PROPORTIONS_TEXT_H

#include "plan/strategy/strategy.h"

/* `key` is named in errors: HP_EUSAGE. */
hp_status hp_proportions_read(const char *key, const char *value, hp_proportions *w, hp_error *err);
/* `out` holds HP_STRATEGY_TEXT bytes. */
void hp_proportions_write(const hp_proportions *w, char *out);

/* Are there as many as an axis has replicas, rows or columns of tiles, or a divisor of those? *misfit, if not NULL: the first
 * spatial stage that they do not fit, -1 where none has several. */
bool hp_proportions_fit(const hp_strategy *s, int axis, int *misfit);

#endif
