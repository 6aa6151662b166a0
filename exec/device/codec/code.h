/* code.h - encode and decode tasks: convert values to a codec's form (plan/codec/codec.h) and back, the same
 * on every device whose memory the processor can address. */
#ifndef HP_CODE_H
#define HP_CODE_H

#include "exec/device/device_bind.h"

/* encode: y = code of x[0]. decode: y = values of x[0]; several codes: the sum of their values, in order. */
void hp_code_encode(const hp_bound *b);
void hp_code_decode(const hp_bound *b);
/* project, factor, expand: PowerSGD. */
void hp_code_factors(const hp_bound *b, const hp_step *s);
/* Does this build have the codecs of all the role's messages? Errors: HP_EUNAVAIL. */
hp_status hp_codes_here(const hp_role *r, hp_error *err);

#endif
