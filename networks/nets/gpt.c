/* gpt.c - GPT-2 (Radford et al. 2019) and GPT-3 (Brown et al. 2020, table 2.1): ids, learned positions,
 * pre-norm blocks with causal attention, and a head tied to the table of ids. Names and layout of weights are
 * those of GPT-2's files, whose matrices are (I, O). So are the initial weights: products before a sum are
 * scaled by 1 / sqrt(2 layers). Without dropout. */
#include "networks/nets/net_act.h"
#include "networks/nets/nets.h"
#include "networks/nets/net_tokens.h"

#include <math.h>

static const double std = 0.02;

static int block(hp_builder *b, int x, int i, const hp_net_args *a) {
    const double last = std / sqrt(2.0 * a->layers);
    if (i > 0) hp_build_unit(b);
    hp_build_scope(b, "h.%d.", i);
    int y = hp_build_layernorm(b, x, "ln_1");
    hp_build_scope(b, "h.%d.attn.", i);
    y = hp_tokens_attend(b, y, (hp_tokens){.qkv = "c_attn", .out = "c_proj", .turned = true},
                         (hp_heads){.heads = a->heads, .causal = true}, HP_INIT_NORMAL, std);
    hp_build_init(b, 0, HP_INIT_NORMAL, last);
    hp_build_scope(b, "h.%d.", i);
    x = hp_build_add(b, x, y, "add_1");
    y = hp_build_layernorm(b, x, "ln_2");
    y = hp_tokens_project(b, y, (hp_tokens_linear){"mlp.c_fc", HP_TP_COLUMN, true}, a->mlp, HP_INIT_NORMAL,
                          std);
    y = hp_build_act(b, y, "mlp.act", HP_ACT_GELU_TANH);
    y = hp_tokens_project(b, y, (hp_tokens_linear){"mlp.c_proj", HP_TP_ROW, true}, a->hidden, HP_INIT_NORMAL,
                          last);
    return hp_build_add(b, x, y, "add_2");
}

void hp_net_write_gpt(hp_builder *b, const hp_net_args *a) {
    b->linear_bias_init = HP_INIT_ZERO;
    const int embedded = hp_build_embedding(b, 0, "wte", a->vocab, a->hidden);
    hp_build_init(b, 0, HP_INIT_NORMAL, std);
    int x = hp_build_position(b, embedded, "wpe", "weight");
    hp_build_init(b, 0, HP_INIT_NORMAL, std);
    for (int i = 0; i < a->layers; i++) x = block(b, x, i, a);
    hp_build_unit(b);
    hp_build_scope(b, "%s", "");
    x = hp_build_layernorm(b, x, "ln_f");
    hp_build_project_tied(b, x, "lm_head", embedded);
}
