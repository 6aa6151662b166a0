/* streams.h - random streams by purpose. The top byte of the Philox stream is the purpose, so no two
 * purposes share a draw. */
#ifndef HP_STREAMS_H
#define HP_STREAMS_H

#include <stdint.h>

#define HP_STREAM(letter) ((uint64_t)(letter) << 56)

#define HP_STREAM_WEIGHTS HP_STREAM('W') /* + parameter; counter: element / 4 */
#define HP_STREAM_SHUFFLE HP_STREAM('S') /* + epoch and round */
#define HP_STREAM_PIXELS  HP_STREAM('P') /* + split and sample; counter: pixel / 16 */
#define HP_STREAM_LABELS  HP_STREAM('L') /* + split; counter: sample */
#define HP_STREAM_MASKS   HP_STREAM('M') /* + split and sample; counter: pixel / 4 */

#endif
