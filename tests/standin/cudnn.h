/* cudnn.h - what exec/cuda/plugin.c says of cuDNN. */
#ifndef HP_STANDIN_CUDNN_H
#define HP_STANDIN_CUDNN_H

#include <stddef.h>

#ifdef __cplusplus
extern "C"
#endif
    size_t
    cudnnGetVersion(void);

#endif
