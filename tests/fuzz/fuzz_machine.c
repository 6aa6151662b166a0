/* fuzz_machine.c - any text in place of a machine: an error with a message, or a machine whose canonical text
 * is the same machine. */
#include "tests/fuzz/fuzz_text.h"

#include "machines/machine.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    hp_arena *a = hp_arena_new();
    hp_machine m, back;
    hp_error err = {0};
    const hp_status s = hp_machine_parse(fuzz_text(a, data, size), "x", &m, &err);
    if (s != HP_OK) {
        fuzz_refused(s, HP_EDATA, HP_EUSAGE, &err);
    } else {
        const char *text = hp_machine_text(a, &m);
        if (hp_machine_parse(text, "x", &back, &err) != HP_OK ||
            strcmp(hp_machine_text(a, &back), text) != 0) {
            fprintf(stderr, "%s\n%s\n", text, err.text);
            abort();
        }
        for (int d = 0; d < hp_machine_devices(&m) && d < 64; d++) hp_machine_speed_at(&m, d);
    }
    hp_arena_free(a);
    return 0;
}
