/* nearest.h - suggests the name that a mistyped one probably means. */
#ifndef HP_NEAREST_H
#define HP_NEAREST_H

/* Returns the name with the fewest edits (Levenshtein 1966) from `word` among `n` names. NULL if that takes
 * more than three edits, or as many as `word` has letters. Ignores case and anything but letters and digits.
 * Words of more than 64 letters match nothing. */
const char *hp_nearest(const char *word, const char *const *name, int n);

#endif
