/* code.h - encode and decode tasks: values to what a codec (plan/codec/codec.h) makes of them and back, the same on every
 * device whose memory the processor addresses. */
#ifndef HP_CODE_H
#define HP_CODE_H

#include "exec/device/device_bind.h"

/* y = code of x[0]; y = x[0]'s values, of several codes their sum in order. */
void hp_code_encode(const hp_bound *b);
void hp_code_decode(const hp_bound *b);
/* project, factor, expand: PowerSGD. */
void hp_code_factors(const hp_bound *b, const hp_step *s);
/* Were the codecs of all the role's messages built in? Errors: HP_EUNAVAIL. */
hp_status hp_codes_here(const hp_role *r, hp_error *err);

#endif
