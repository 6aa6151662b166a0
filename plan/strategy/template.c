/* template.c - the star of a strategy: put in, and found for a number of devices. */
#include "plan/strategy/template.h"

#include <string.h>

bool hp_template_has_star(const char *text) {
    return strchr(text, '*') != NULL;
}

static hp_status with_star(const char *text, int star, hp_strategy *s, hp_error *err) {
    char filled[HP_STRATEGY_TEXT];
    const char *at = strchr(text, '*');
    if (!at) return hp_strategy_parse(text, s, err);
    if ((size_t)snprintf(filled, sizeof filled, "%.*s%d%s", (int)(at - text), text, star, at + 1) >=
        sizeof filled)
        return hp_fail(err, HP_EUSAGE, "strategy: longer than %d characters", HP_STRATEGY_TEXT - 1);
    return hp_strategy_parse(filled, s, err);
}

hp_status hp_template_smallest(const char *text, hp_strategy *s, hp_error *err) {
    return with_star(text, 1, s, err);
}

/* Devices with this star; 0: no strategy has it. */
static int devices_with(const char *text, int star, hp_strategy *s) {
    hp_error ignored;
    return with_star(text, star, s, &ignored) == HP_OK ? hp_strategy_devices(s) : 0;
}

hp_status hp_template_check(const char *text, hp_error *err) {
    hp_strategy one, two;
    const char *at = strchr(text, '*');
    if (at && strchr(at + 1, '*'))
        return hp_fail(err, HP_EUSAGE, "strategy '%.80s' has two stars; one number may be left open", text);
    HP_TRY(with_star(text, 1, &one, err));
    if (!at) return HP_OK;
    if (devices_with(text, 2, &two) > hp_strategy_devices(&one)) return HP_OK;
    return hp_fail(
        err, HP_EUSAGE,
        "strategy '%.80s': the star changes no number of devices; put it where it does, as in dp=*", text);
}

hp_status hp_template_fill(const char *text, int devices, hp_filled *out, hp_error *err) {
    hp_strategy s;
    *out = (hp_filled){.star = 0};
    HP_TRY(with_star(text, 1, &s, err));
    /* star: `below` fits; `above` needs too many devices, or gives no strategy */
    int below = 0, above = devices + 1;
    if (!hp_template_has_star(text)) above = 1;
    while (above - below > 1) {
        const int middle = below + (above - below) / 2, has = devices_with(text, middle, &s);
        *(has && has <= devices ? &below : &above) = middle;
    }
    out->star = below;
    if (below) out->exact = devices_with(text, below, &out->s) == devices;
    out->has_above = !out->exact && devices_with(text, above, &out->above) > devices;
    if (hp_template_has_star(text)) return HP_OK;
    out->s = s;
    out->exact = hp_strategy_devices(&s) == devices;
    return HP_OK;
}
