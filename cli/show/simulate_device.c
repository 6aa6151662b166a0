/* simulate_device.c - prints above every table which device and precision a simulation is for, and what it
 * assumes about the machine. */
#include "cli/history/history_speed.h"
#include "cli/show/simulate_show.h"
#include "costmodels/framework/framework.h"

#include "base/text.h"

/* ", 1 day old, of this processor, at usual speed (1.2x the time of the quiet machine); --check-speed: at the
 * speed now" */
static void print_costs(const simulate_setup *s) {
    const simulate_costs c = simulate_costs_of(s->costs.table);
    char ratio[32];
    printf("costs: %s", hp_cost_origin(s->costs.table));
    if (c.days >= 0) printf(", %d day%s old", c.days, c.days == 1 ? "" : "s");
    if (c.measured && hp_device_of_machine(s->machine.name))
        printf(", of %s processor", c.here ? "this" : "ANOTHER");
    if (!c.has_speed || !s->machine.device.is_cpu) return;
    const hp_speed quiet = hp_speed_quiet();
    printf(", at %s speed (%.2fx the time of the quiet machine)", s->costs.checked ? "present" : "usual",
           simulate_mean_slowdown(hp_cost_speed(s->costs.table), &quiet));
    if (!s->costs.checked) return;
    const double now = simulate_mean_slowdown(&s->costs.now, &s->costs.usual);
    printf(": now %s %s when it was calibrated (", run_speed_ratio(now, ratio), run_speed_than(now));
    for (int y = 0; y < HP_SPEED_CLASSES; y++)
        printf("%s%s %+.0f%%", y ? ", " : "", hp_yardstick_names[y],
               100 * (s->costs.now.slowdown[y] / s->costs.usual.slowdown[y] - 1));
    printf(")");
}

void simulate_print_device(const simulate_setup *s, const simulate_found *f) {
    char name[64], text[HP_MACHINE_ASSUMED];
    const hp_machine *m = &s->machine;
    const char *kin = hp_cost_stand_in(s->costs.table, m);
    hp_arena *words = hp_arena_new();
    if (hp_machine_mixed(m))
        printf("machine %s: %d node%s of %s%s%s; ", cli_plain(m->name, name, sizeof name), m->nodes,
               m->nodes == 1 ? "" : "s", hp_machine_node_text(words, m), m->mix.n_slow ? ", " : "",
               hp_machine_slow_text(words, m));
    else
        printf("machine %s: %d x %d %s; ", cli_plain(m->name, name, sizeof name), m->nodes,
               m->devices_per_node, m->device.name);
    hp_arena_free(words);
    print_costs(s);
    if (kin) printf(", no rows for %s: those of %s assumed, scaled by data-sheet rates", m->device.name, kin);
    printf("; seed %llu\n", (unsigned long long)s->step.seed);
    if (*m->assumed) printf("assumed: %s\n", cli_plain(m->assumed, text, sizeof text));
    printf("device %s", s->device->name);
    for (int i = 0; i < s->network.n_prec; i++) printf(", %s", hp_prec_names[s->network.prec[i]]);
    if (s->eval.framework) printf("; as %s, %s", s->eval.framework->name, s->eval.framework->layout);
    simulate_print_gains(f);
    printf("\n");
    simulate_print_real(f);
}

/* --- JSON --- */

static json_t *speed_json(const hp_speed *s) {
    json_t *o = json_object();
    for (int y = 0; y < HP_SPEED_CLASSES; y++)
        json_object_set_new(o, hp_yardstick_names[y], json_real(s->slowdown[y]));
    return o;
}

/* age_days, processor: null where nothing was measured; speed, speed_now: slowdowns against the quiet
 * machine. */
static json_t *costs_json(const simulate_setup *s) {
    const simulate_costs c = simulate_costs_of(s->costs.table);
    return json_pack("{s:s, s:o, s:o, s:b, s:o, s:o}", "origin", hp_cost_origin(s->costs.table), "age_days",
                     c.days >= 0 ? json_integer(c.days) : json_null(), "processor",
                     c.measured ? json_string(hp_cost_processor(s->costs.table)) : json_null(),
                     "this_processor", (int)c.here, "speed",
                     c.has_speed
                         ? speed_json(s->costs.checked ? &s->costs.usual : hp_cost_speed(s->costs.table))
                         : json_null(),
                     "speed_now", s->costs.checked ? speed_json(&s->costs.now) : json_null());
}

/* Step time with devices all alike, and with stages cut as for equal devices; 0: not possible. Seconds. */
static json_t *mix_json(const simulate_setup *s, const simulate_found *f) {
    hp_arena *words = hp_arena_new();
    json_t *o = json_pack("{s:s, s:s, s:s, s:f, s:f}", "node", hp_machine_node_text(words, &s->machine),
                          "slow", hp_machine_slow_text(words, &s->machine), "alike_class",
                          hp_machine_class(&s->machine, f->facts.mix.class)->name, "alike_s",
                          f->facts.mix.alike_s, "even_stages_s", f->facts.mix.even_s);
    hp_arena_free(words);
    return o;
}

/* null: not of an int8 network. */
static json_t *real_json(const simulate_found *f) {
    if (!f->facts.n_counted) return json_null();
    json_t *names = json_array();
    for (int i = 0; i < f->facts.n_real; i++)
        json_array_append_new(names, json_string(f->facts.real_layer[i]));
    return names;
}

void simulate_json_device(const simulate_setup *s, const simulate_found *f, json_t *o) {
    json_t *notes = json_array();
    char precs[128] = "", zero[200];
    for (int i = 0; i < s->network.n_prec; i++)
        hp_text_add((hp_text){precs, sizeof precs}, "%s%s", i ? "," : "", hp_prec_names[s->network.prec[i]]);
    for (int i = 0; i < s->n_note; i++) json_array_append_new(notes, json_string(s->note[i]));
    if (simulate_zero_note(f, zero)) json_array_append_new(notes, json_string(zero));
    json_object_set_new(o, "real_layers", real_json(f));
    json_object_set_new(o, "device", json_string(s->device->name));
    json_object_set_new(o, "device_class", json_string(s->machine.device.name));
    if (hp_machine_mixed(&s->machine)) json_object_set_new(o, "mix", mix_json(s, f));
    json_object_set_new(o, "prec", json_string(precs));
    json_object_set_new(o, "as", json_string(s->eval.framework ? s->eval.framework->name : "hplan"));
    if (s->eval.framework) json_object_set_new(o, "layout", json_string(s->eval.framework->layout));
    json_object_set_new(o, "gains", simulate_gains_json(f));
    json_object_set_new(o, "costs", json_string(hp_cost_origin(s->costs.table)));
    json_object_set_new(o, "cost_table", costs_json(s));
    json_object_set_new(o, "notes", notes);
}
