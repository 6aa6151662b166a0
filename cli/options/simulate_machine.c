/* simulate_machine.c - which machine a simulation is for, how many of its devices, and what computes on them.
 * The device follows the machine unless --device says otherwise. */
#include "cli/options/simulate.h"

#include "base/units.h"
#include "plan/strategy/template.h"

#include <stdarg.h>
#include <string.h>

/* Adds a note, formatted as by printf. */
__attribute__((format(printf, 2, 3))) static void add_note(simulate_setup *s, const char *format, ...) {
    if (s->n_note == SIM_MAX_NOTES) return;
    va_list words;
    va_start(words, format);
    vsnprintf(s->note[s->n_note++], sizeof s->note[0], format, words);
    va_end(words);
}

/* A sweep has a row for the count that is too large. */
static int smallest_count(const simulate_setup *s) {
    int least = s->curves.n_count ? s->curves.count[0] : 0;
    for (int i = 1; i < s->curves.n_count; i++)
        least = s->curves.count[i] < least ? s->curves.count[i] : least;
    return least;
}

/* The largest count in --gpus. A strategy that needs more is rejected with that reason. */
static int largest_count(const simulate_setup *s) {
    int most = 0;
    for (int i = 0; i < s->curves.n_count; i++) most = s->curves.count[i] > most ? s->curves.count[i] : most;
    return most;
}

/* The one at hand of the device asked for, once it has been calibrated; else the host's cores. */
static hp_status load_at_hand(const simulate_options *o, hp_machine *m, hp_error *err) {
    const hp_device_info *asked = &hp_devices[HP_DEVICE_CPU];
    hp_error unknown;
    if (o->machine.device) HP_TRY(hp_device_find(o->machine.device, &asked, err));
    const hp_status status = hp_machine_load(asked->machine, m, &unknown);
    if (status == HP_EUNAVAIL) return hp_machine_load("local", m, err);
    if (status != HP_OK) *err = unknown;
    return status;
}

/* A product gets as many nodes as it takes. */
static void grow_machine(simulate_setup *s) {
    hp_machine *m = &s->machine;
    const int ranks =
                  s->curves.has_strategy && !s->curves.sweep ? hp_strategy_devices(&s->curves.strategy) : 0,
              asked = largest_count(s), devices = asked > ranks ? asked : ranks;
    if (!m->any_size || hp_machine_mixed(m) || devices <= hp_machine_devices(m)) return;
    add_note(s, "%s has %d nodes: simulating as many as %d devices take", m->name, m->nodes, devices);
    m->nodes = (devices + m->devices_per_node - 1) / m->devices_per_node;
}

/* The machine at hand unless more devices are asked for than it has; a strategy shares its cores instead. */
static hp_status choose_machine(const simulate_options *o, simulate_setup *s, hp_error *err) {
    static const char elsewhere[] = "thesis-a100";
    if (o->machine.name) {
        HP_TRY(hp_machine_load(o->machine.name, &s->machine, err));
        if (*s->machine.assumed) add_note(s, "%.60s: assumed: %s", o->machine.name, s->machine.assumed);
        return HP_OK;
    }
    HP_TRY(load_at_hand(o, &s->machine, err));
    const int here = hp_machine_devices(&s->machine);
    if ((s->curves.has_strategy && !s->curves.sweep) || largest_count(s) <= here) return HP_OK;
    HP_TRY(hp_machine_load(elsewhere, &s->machine, err));
    add_note(s, "this machine has %d device%s: simulating %s, whose devices are %s (choose with --machine)",
             here, here == 1 ? "" : "s", elsewhere, s->machine.device.name);
    return HP_OK;
}

/* --set: of the machine that was chosen. */
static hp_status change_machine(const simulate_options *o, simulate_setup *s, hp_error *err) {
    for (int i = 0; i < o->machine.n_set; i++) HP_TRY(hp_machine_set(&s->machine, o->machine.set[i], err));
    if (o->machine.n_set)
        add_note(s, "what if: %s with %.100s%s%.100s%s", s->machine.name, o->machine.set[0],
                 o->machine.n_set > 1 ? ", " : "", o->machine.n_set > 1 ? o->machine.set[1] : "",
                 o->machine.n_set > 2 ? ", ..." : "");
    return HP_OK;
}

/* --ranks-per-node: NICs, cores and memory stay those of the whole node. */
static hp_status leave_empty(const simulate_options *o, simulate_setup *s, hp_error *err) {
    int64_t n = s->machine.devices_per_node;
    if (o->machine.ranks_per_node)
        HP_TRY(hp_parse_int(o->machine.ranks_per_node, "--ranks-per-node", 1, s->machine.devices_per_node, &n,
                            err));
    s->machine.devices_per_node = (int32_t)n;
    return HP_OK;
}

static hp_status choose_device(const simulate_options *o, simulate_setup *s, hp_error *err) {
    const hp_machine *m = &s->machine;
    const hp_device_info *fits = hp_device_by_default(m->name, m->device.is_cpu);
    s->device = fits;
    if (o->machine.device) HP_TRY(hp_device_find(o->machine.device, &s->device, err));
    s->network.dtype = s->device->dtype;
    if (hp_device_on_gpu(s->device) != hp_device_on_gpu(fits))
        add_note(s,
                 "%s is a machine of %s, and the plan is for device %s: times are those of the machine, "
                 "memory and "
                 "back ends those of the device; --device %s plans for the machine as it is",
                 m->name, m->device.is_cpu ? "CPU cores" : "GPUs", s->device->name, fits->name);
    return HP_OK;
}

static bool has_star(const simulate_setup *s) {
    for (int i = 0; i < s->curves.n_template; i++)
        if (hp_template_has_star(s->curves.template[i])) return true;
    return false;
}

static hp_status check_counts(simulate_setup *s, hp_error *err) {
    const int devices = hp_machine_devices(&s->machine);
    if (!s->curves.n_count && (!s->curves.has_strategy || has_star(s)))
        s->curves.count[s->curves.n_count++] = devices;
    const int asked = largest_count(s);
    const int ranks =
        s->curves.has_strategy && !s->curves.sweep ? hp_strategy_ranks(&s->curves.strategy) : asked;
    if (!s->machine.device.is_cpu && (s->curves.sweep ? smallest_count(s) : asked) > devices)
        return hp_fail(err, HP_EPLAN, "E-GPUS: %d devices, %s has %d; give --gpus %d",
                       s->curves.sweep ? smallest_count(s) : asked, s->machine.name, devices, devices);
    if (s->eval.straggler_rank >= ranks)
        return hp_fail(err, HP_EUSAGE, "--straggler: rank %d of %d; the ranks are 0 to %d",
                       s->eval.straggler_rank, ranks, ranks - 1);
    return HP_OK;
}

hp_status simulate_choose_machine(const simulate_options *o, simulate_setup *s, hp_error *err) {
    HP_TRY(choose_machine(o, s, err));
    HP_TRY(change_machine(o, s, err));
    HP_TRY(leave_empty(o, s, err));
    grow_machine(s);
    HP_TRY(choose_device(o, s, err));
    return check_counts(s, err);
}

void simulate_tell(const simulate_setup *s) {
    for (int i = 0; i < s->n_note; i++) fprintf(stderr, "hplan: %s\n", s->note[i]);
}
