/* backend.c - which library carries which messages. */
#include "plan/strategy/strategy.h"
#include "plan/strategy/legal.h"
#include "plan/graph/precision.h"

#include <stdio.h>
#include <string.h>

const char *const hp_backend_names[] = {"mpi", "nccl", NULL};

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

void hp_comm_text(const int32_t choice[HP_TRAFFICS], char *out, size_t n) {
    out[0] = 0;
    if (all_alike(choice)) {
        if (choice[0] != HP_COMM_AUTO) snprintf(out, n, "%s", hp_backend_names[choice[0] - 1]);
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

/* Every device has MPI: what lies in its memory goes through the host's. */
bool hp_device_has_backend(const char *device, hp_backend backend) {
    return !device || backend == HP_BACKEND_MPI || strcmp(device, "cuda") == 0;
}

/* NCCL refuses two ranks on one GPU. */
hp_backend hp_comm_backend(int32_t choice, const char *device, int clients) {
    if (choice != HP_COMM_AUTO) return (hp_backend)(choice - 1);
    const bool nccl = device && hp_device_has_backend(device, HP_BACKEND_NCCL) && clients == 1;
    return nccl ? HP_BACKEND_NCCL : HP_BACKEND_MPI;
}

/* --- legality --- */

bool hp_legal_comm(const hp_legal_case *c, hp_reject *why) {
    for (int i = 0; i < HP_TRAFFICS; i++) {
        if (c->s->clients == 1 || c->s->comm[i] != 1 + (int32_t)HP_BACKEND_NCCL) continue;
        hp_refuse(why, "E-COMM", "comm=%s:nccl: NCCL wants a device for each rank, clients=%d",
                  traffic_names[i], c->s->clients);
        return hp_fix(why, "comm=mpi");
    }
    return true;
}

static bool comm_allowed(const hp_strategy *s, const char *device, hp_reject *why) {
    for (int i = 0; i < HP_TRAFFICS; i++) {
        const hp_backend b = hp_comm_backend(s->comm[i], device, s->clients);
        if (hp_device_has_backend(device, b)) continue;
        hp_refuse(why, "E-COMM", "comm=%s:%s: device %.20s has no %s", traffic_names[i], hp_backend_names[b],
                  device, hp_backend_names[b]);
        return hp_fix(why, "comm=auto");
    }
    return true;
}

bool hp_device_allows(const char *device, const hp_strategy *s, bool infer, hp_reject *why) {
    return comm_allowed(s, device, why) && hp_prec_allowed(s->prec, infer, device, why);
}
