/* nearest.c - Levenshtein distances, one row at a time. */
#include "base/nearest.h"

#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

enum { MAX_WORD = 64, MOST_EDITS = 3 };

static int min_of_3(int a, int b, int c) {
    const int m = a < b ? a : b;
    return m < c ? m : c;
}

static int edit_distance(const char *a, const char *b) {
    int row[MAX_WORD + 1];
    const int n = (int)strlen(b);
    for (int j = 0; j <= n; j++) row[j] = j;
    for (int i = 1; a[i - 1]; i++) {
        int diagonal = row[0];
        row[0] = i;
        for (int j = 1; j <= n; j++) {
            const int change = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            row[j] = min_of_3(row[j] + 1, row[j - 1] + 1, change);
        }
    }
    return row[n];
}

/* Keeps letters and digits, in lower case: ResNet-50 becomes resnet50. Returns false if the word is too
 * long. */
static bool normalise(const char *name, char out[MAX_WORD + 1]) {
    int k = 0;
    if (strlen(name) > MAX_WORD) return false;
    for (const char *c = name; *c; c++)
        if (isalnum((unsigned char)*c)) out[k++] = (char)tolower((unsigned char)*c);
    out[k] = '\0';
    return true;
}

const char *hp_nearest(const char *word, const char *const *name, int n) {
    const char *best = NULL;
    char asked[MAX_WORD + 1], other[MAX_WORD + 1];
    int fewest = MOST_EDITS + 1;
    if (!normalise(word, asked)) return NULL;
    for (int i = 0; i < n; i++) {
        if (!normalise(name[i], other)) continue;
        const int edits = edit_distance(asked, other);
        if (edits >= fewest || 2 * edits > (int)strlen(other))
            continue; /* if most letters differ, it is another word */
        best = name[i];
        fewest = edits;
    }
    return best;
}
