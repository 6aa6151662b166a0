# find.cmake - is there what the GPU part is built with: nvcc, the CUDA runtime, cuBLASLt, cuDNN, NCCL? Sets
# HPLAN_HAVE_CUDA, CUDNN_LIBRARY, NCCL_LIBRARY. No driver and no GPU is needed.
if(HP_WITH_CUDA STREQUAL "OFF")
  return()
endif()
include(CheckLanguage)
if(NOT CMAKE_CUDA_COMPILER)
  find_program(CMAKE_CUDA_COMPILER nvcc HINTS $ENV{CUDA_HOME}/bin /usr/local/cuda/bin)
endif()
check_language(CUDA)
if(CMAKE_CUDA_COMPILER)
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES 80-real 90) # A100, H100 and H200; and PTX for what comes after them
  endif()
  set(CMAKE_CUDA_RUNTIME_LIBRARY Shared) # one runtime, also of programs that link kernels
  enable_language(CUDA)
  find_package(CUDAToolkit)
  find_path(CUDNN_INCLUDE cudnn.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
  find_path(NCCL_INCLUDE nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
  find_library(CUDNN_LIBRARY cudnn HINTS ${CUDAToolkit_LIBRARY_DIR})
  find_library(NCCL_LIBRARY nccl HINTS ${CUDAToolkit_LIBRARY_DIR})
endif()
if(CUDAToolkit_FOUND AND CUDNN_INCLUDE AND NCCL_INCLUDE AND CUDNN_LIBRARY AND NCCL_LIBRARY)
  set(HPLAN_HAVE_CUDA ON)
  # what the plug-in links of the other libraries: position independent, and nothing of it to be replaced from
  # outside, so that calls stay direct
  set(CMAKE_POSITION_INDEPENDENT_CODE ON)
  set(CMAKE_C_VISIBILITY_PRESET hidden)
elseif(HP_WITH_CUDA STREQUAL "ON")
  message(FATAL_ERROR "the GPU part needs nvcc, cuDNN and NCCL: ${CMAKE_CUDA_COMPILER}, ${CUDNN_LIBRARY}, ${NCCL_LIBRARY}")
else()
  message(STATUS "the GPU part is left out: ${CMAKE_CUDA_COMPILER}, ${CUDNN_LIBRARY}, ${NCCL_LIBRARY}")
endif()
