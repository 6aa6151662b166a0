/* backend.c - which library carries which messages. */
#include "plan/strategy/strategy.h"
#include "plan/strategy/legal.h"
#include "plan/graph/precision.h"

#include <stdio.h>
#include <string.h>

static const char *const traffic_names[HP_TRAFFICS] = {
    [HP_TRAFFIC_HALO] = "halo",
    [HP_TRAFFIC_STAGE] = "stage",
    [HP_TRAFFIC_ALLREDUCE] = "allreduce",
    [HP_TRAFFIC_STATS] = "stats",
};

/* --- text --- */

static hp_status parse_choice(const char *word, int32_t *choice, hp_error *err) {
    static const char *const words[] = {"auto", "mpi", "nccl"}; /* by choice */
    for (int32_t i = 0; i <= (int32_t)HP_BACKENDS; i++) {
        if (strcmp(words[i], word) != 0) continue;
        *choice = i;
        return HP_OK;
    }
    return hp_fail(err, HP_EUSAGE, "strategy: comm: no back end is called '%.40s'; choose auto, mpi or nccl",
                   word);
}

/* "halo:mpi" */
static hp_status parse_one(char *item, int32_t choice[HP_TRAFFICS], bool seen[HP_TRAFFICS], hp_error *err) {
    char *word = strchr(item, ':');
    if (word) *word++ = 0;
    for (int i = 0; word && i < HP_TRAFFICS; i++) {
        if (strcmp(traffic_names[i], item) != 0) continue;
        if (seen[i]) return hp_fail(err, HP_EUSAGE, "strategy: comm: %s is given twice", item);
        seen[i] = true;
        return parse_choice(word, &choice[i], err);
    }
    return hp_fail(
        err, HP_EUSAGE,
        "strategy: comm: '%.40s' is not halo, stage, allreduce or stats with a back end, for example "
        "comm=halo:mpi+allreduce:nccl",
        item);
}

hp_status hp_comm_parse(const char *value, int32_t choice[HP_TRAFFICS], hp_error *err) {
    char copy[160], *rest = copy;
    bool seen[HP_TRAFFICS] = {false};
    if (!strchr(value, ':')) {
        HP_TRY(parse_choice(value, &choice[0], err));
        for (int i = 1; i < HP_TRAFFICS; i++) choice[i] = choice[0];
        return HP_OK;
    }
    for (int i = 0; i < HP_TRAFFICS; i++) choice[i] = HP_COMM_AUTO;
    snprintf(copy, sizeof copy, "%s", value);
    for (char *item = strsep(&rest, "+"); item; item = strsep(&rest, "+"))
        HP_TRY(parse_one(item, choice, seen, err));
    return HP_OK;
}

static bool all_alike(const int32_t choice[HP_TRAFFICS]) {
    for (int i = 1; i < HP_TRAFFICS; i++)
        if (choice[i] != choice[0]) return false;
    return true;
}

bool hp_comm_is_auto(const int32_t choice[HP_TRAFFICS]) {
    return choice[0] == HP_COMM_AUTO && all_alike(choice);
}

void hp_comm_text(const int32_t choice[HP_TRAFFICS], char *out, size_t n) {
    out[0] = 0;
    if (all_alike(choice)) {
        snprintf(out, n, "%s", hp_comm_is_auto(choice) ? "auto" : hp_backend_names[choice[0] - 1]);
        return;
    }
    for (int i = 0; i < HP_TRAFFICS; i++) {
        const size_t used = strlen(out);
        if (choice[i] != HP_COMM_AUTO)
            snprintf(out + used, n - used, "%s%s:%s", used ? "+" : "", traffic_names[i],
                     hp_backend_names[choice[i] - 1]);
    }
}

/* --- devices --- */

/* NCCL refuses two ranks on one GPU. */
static const bool wants_device_of_its_own[HP_BACKENDS] = {[HP_BACKEND_NCCL] = true};

hp_backend hp_comm_backend(int32_t choice, const hp_device_info *device, int clients) {
    if (choice != HP_COMM_AUTO) return (hp_backend)(choice - 1);
    const hp_backend own = device ? device->own_backend : HP_BACKEND_MPI;
    return wants_device_of_its_own[own] && clients > 1 ? HP_BACKEND_MPI : own;
}

/* --- legality --- */

bool hp_legal_comm(const hp_legal_case *c, hp_reject *why) {
    for (int i = 0; i < HP_TRAFFICS; i++) {
        if (c->s->clients == 1 || c->s->comm[i] != 1 + (int32_t)HP_BACKEND_NCCL) continue;
        hp_refuse(why, HP_REJECT_COMM, "comm=%s:nccl: NCCL wants a device for each rank, clients=%d",
                  traffic_names[i], c->s->clients);
        return hp_fix(why, "comm=mpi");
    }
    return true;
}

static bool comm_allowed(const hp_strategy *s, const hp_device_info *device, hp_reject *why) {
    for (int i = 0; i < HP_TRAFFICS; i++) {
        const hp_backend b = hp_comm_backend(s->comm[i], device, s->clients);
        if (hp_device_has_backend(device, b)) continue;
        hp_refuse(why, HP_REJECT_COMM, "comm=%s:%s: device %.20s has no %s", traffic_names[i],
                  hp_backend_names[b], device->name, hp_backend_names[b]);
        return hp_fix(why, "comm=auto");
    }
    return true;
}

bool hp_device_allows(const hp_device_info *device, const hp_strategy *s, bool infer, hp_reject *why) {
    return comm_allowed(s, device, why) && hp_prec_allowed(s->prec, infer, device, why);
}
