/* cmd_machine.c - lists the machines that hplan knows, shows one in full, checks a description, describes
 * this host. */
#include "cli/commands/local_gpu.h"
#include "cli/show/frame.h"
#include "machines/detect.h"
#include "machines/shipped.h"

#include <string.h>

typedef struct options {
    bool detect;
    const char *sys;
} options;

static hp_status list(void) {
    hp_machine m;
    for (int i = 0; hp_machine_shipped_name(i); i++) {
        hp_error err;
        if (hp_machine_load(hp_machine_shipped_name(i), &m, &err) != HP_OK)
            return (hp_status)cli_report(&err);
        printf("%-12s %5d x %-2d %-13s %-10s %6.4g GB/s  %d x %-7s %5.4g GB/s\n", m.name, m.nodes,
               m.devices_per_node, m.device.name, m.intra.name, 1e-9 * m.intra.bytes_per_s, m.nics_per_node,
               m.inter.name, 1e-9 * m.inter.bytes_per_s);
    }
    return HP_OK;
}

static hp_status show(frame *f, const char *name, hp_error *err) {
    const char *shipped = hp_machine_shipped(name); /* with its sources */
    hp_machine m;
    HP_TRY(hp_machine_load(name, &m, err));
    printf("%s", shipped ? shipped : hp_machine_text(f->arena, &m));
    return HP_OK;
}

/* "2 x a100-80 + 2 x v100-16", or "4 a100-80". */
static const char *node_words(frame *f, const hp_machine *m) {
    return m->mix.n_class > 0 ? hp_machine_node_text(f->arena, m)
                              : hp_arena_printf(f->arena, "%d %s", m->devices_per_node, m->device.name);
}

static hp_status check(frame *f, const char *what, hp_error *err) {
    hp_machine m;
    char plain[512];
    HP_TRY(hp_machine_load(what, &m, err));
    printf("%s: %d node%s of %s, %d devices\n", m.name, m.nodes, m.nodes == 1 ? "" : "s", node_words(f, &m),
           hp_machine_devices(&m));
    if (m.mix.n_slow > 0) printf("%s\n", hp_machine_slow_text(f->arena, &m));
    if (*m.assumed) printf("assumed: %s\n", cli_plain(m.assumed, plain, sizeof plain));
    return HP_OK;
}

/* Describes this node's GPUs if it has any, else its cores. */
static hp_status detect(frame *f, const char *sys, hp_error *err) {
    local_gpu g;
    hp_error none;
    hp_machine m;
    if (local_gpu_find(&g, &none) == HP_OK)
        HP_TRY(hp_machine_of_gpus(&hp_devices[HP_DEVICE_CUDA], &g.gpu, &m, err));
    else
        HP_TRY(hp_machine_load("local", &m, err));
    const bool nics = hp_machine_detect(sys ? sys : "/sys", &m);
    printf("%s", hp_machine_text(f->arena, &m));
    printf("# rates of the devices%s: data sheets and guesses, not measured (hplan calibrate)\n",
           nics ? "" : " and NICs (none was found)");
    return HP_OK;
}

static hp_status run(frame *f, hp_error *err) {
    const options *o = f->options;
    const char *what = f->n_word ? f->word[0] : "", *name = f->n_word > 1 ? f->word[1] : NULL;
    hp_status status;
    if (o->detect && !f->n_word)
        status = detect(f, o->sys, err);
    else if (!o->detect && strcmp(what, "list") == 0 && !name)
        status = list();
    else if (!o->detect && strcmp(what, "show") == 0 && name)
        status = show(f, name, err);
    else if (!o->detect && strcmp(what, "check") == 0 && name)
        status = check(f, name, err);
    else
        return hp_fail(
            err, HP_EUSAGE,
            "machine takes list, show NAME, check FILE-or-TEXT, or --detect; for example: hplan machine "
            "show thesis-a100");
    HP_TRY(status);
    return cli_finish_stdout(err);
}

int cmd_machine(int argc, char **argv) {
    static const frame_option option_list[] = {
        {"detect", 0, NULL, offsetof(options, detect), 0, "describe the machine at hand"},
        {"sys", 0, "FOLDER", offsetof(options, sys), 0, "where --detect looks for network cards (/sys)"},
        {0}};
    static const frame_command command = {
        .option = option_list,
        .usage = "list\nshow MACHINE\ncheck FILE|TEXT\n--detect",
        .doc = "Machines as --machine takes them: what hplan knows, with sources; what is wrong with a "
               "description, all "
               "at once; and the description of this node and job, to be kept in a file.\vFor example: hplan "
               "machine "
               "check \"nodes=8; node=4 x a100-80, nvlink=300GB/s; nic=2 x 200Gb/s; fat-tree 2:1\"",
        .min_word = 0,
        .max_word = 2,
        .too_few = "needs list, show, check or --detect. For example: hplan machine list",
        .run = run};
    options o = {0};
    return frame_run(&command, &o, argc, argv);
}
