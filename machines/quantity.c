/* quantity.c - parses a number, a prefix and a unit. The prefix moves the decimal point before the number is
 * read, so that 370.8GB/s equals 370.8e9 exactly. */
#include "machines/quantity.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct prefix {
    const char *name;
    int exponent; /* power of ten */
    double factor;
} prefix;

static const prefix large[] = {{"", 0, 1},        {"k", 3, 1},       {"M", 6, 1},     {"G", 9, 1},
                               {"T", 12, 1},      {"P", 15, 1},      {"Ki", 0, 1024}, {"Mi", 0, 0x1p20},
                               {"Gi", 0, 0x1p30}, {"Ti", 0, 0x1p40}, {NULL, 0, 0}};
static const prefix small[] = {{"", 0, 1}, {"m", -3, 1}, {"u", -6, 1}, {"n", -9, 1}, {NULL, 0, 0}};
static const prefix none[] = {{"", 0, 1}, {NULL, 0, 0}};

typedef struct unit {
    const char *name;
    double factor;
} unit;

static const struct {
    const prefix *prefixes;
    unit units[6]; /* the first is printed */
    const char *usual;
    int exponent; /* power of ten of the usual prefix */
    const char *example;
} kinds[HP_QUANTITIES] = {
    [HP_QUANTITY_COUNT] = {none, {{"", 1}}, "", 0, "a whole number"},
    [HP_QUANTITY_BYTES] = {large, {{"B", 1}, {"", 1}}, "G", 9, "a size such as 80GB or 80GiB"},
    [HP_QUANTITY_RATE] =
        {large, {{"B/s", 1}, {"b/s", 0.125}, {"bit/s", 0.125}}, "G", 9, "a rate such as 300GB/s or 200Gb/s"},
    [HP_QUANTITY_OPS] = {large,
                         {{"FLOP/s", 1}, {"OP/s", 1}, {"FLOPS", 1}, {"OPS", 1}},
                         "T",
                         12,
                         "a rate such as 19.5TFLOP/s"},
    [HP_QUANTITY_SECONDS] = {small, {{"s", 1}}, "u", -6, "a time such as 5us"},
};

/* Splits `text` into prefix and unit; false if it is neither. */
static bool unit_of(const char *text, hp_quantity kind, prefix *p, double *factor) {
    for (const prefix *each = kinds[kind].prefixes; each->name; each++)
        for (int u = 0; kinds[kind].units[u].name; u++) {
            const size_t n = strlen(each->name);
            if (strncmp(text, each->name, n) != 0 || strcmp(text + n, kinds[kind].units[u].name) != 0)
                continue;
            *p = *each;
            *factor = each->factor * kinds[kind].units[u].factor;
            return true;
        }
    return false;
}

bool hp_quantity_read(const char *text, hp_quantity kind, double *value) {
    char number[128], *end;
    const size_t plain = strspn(text, "+-0123456789.");
    if (!strpbrk(text, "0123456789") || plain == 0 || strlen(text) > 60 || strpbrk(text, "xX")) return false;
    *value = strtod(text, &end);
    if (end == text || !isfinite(*value)) return false;
    const bool has_exponent = end > text + plain;
    const int digits = (int)(end - text);
    while (*end == ' ') end++;
    prefix p;
    double factor;
    if (!*end && *value == 0) return true;
    if (!unit_of(end, kind, &p, &factor)) return false;
    snprintf(number, sizeof number, "%.*se%d", digits, text, p.exponent);
    *value = factor * (has_exponent ? *value * pow(10, p.exponent) : strtod(number, NULL));
    return isfinite(*value);
}

const char *hp_quantity_text(double value, hp_quantity kind, char out[48]) {
    double back;
    snprintf(out, 48, "%.15g%s%s", value / pow(10, kinds[kind].exponent), kinds[kind].usual,
             kinds[kind].units[0].name);
    if (value == 0) snprintf(out, 48, "0");
    if (!hp_quantity_read(out, kind, &back) || back != value || (kind == HP_QUANTITY_SECONDS && value >= 1))
        snprintf(out, 48, "%.17g%s", value, kinds[kind].units[0].name);
    return out;
}

const char *hp_quantity_example(hp_quantity kind) {
    return kinds[kind].example;
}
