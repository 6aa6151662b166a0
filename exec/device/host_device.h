/* host_device.h - marks functions shared by processors and GPU kernels. */
#ifndef HP_HOST_DEVICE_H
#define HP_HOST_DEVICE_H

#if defined(__CUDACC__)
#define HP_HOST_DEVICE static __host__ __device__ inline
#else
#define HP_HOST_DEVICE static inline
#endif

#endif
