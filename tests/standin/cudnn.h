/* cudnn.h - what exec/cuda/cuda_plugin.c needs of cuDNN. */
#ifndef HP_TESTS_CUDNN_H
#define HP_TESTS_CUDNN_H

#include <stddef.h>

#ifdef __cplusplus
extern "C"
#endif
    size_t
    cudnnGetVersion(void);

#endif
