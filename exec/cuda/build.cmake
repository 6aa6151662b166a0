# build.cmake - libhplan-cuda.so, which hplan-exec loads where it runs on a GPU (exec/device/device_plugin.h).

# cuDNN and cuBLASLt are a separate library: their plans can be checked without a GPU
file(GLOB dnn_sources CONFIGURE_DEPENDS exec/cuda/dnn/*.c)
add_library(hp_dnn_check OBJECT exec/cuda/dnn/dnn_check.cu)
target_link_libraries(hp_dnn_check PRIVATE view_exec_cuda_dnn hp_lib_plan CUDA::cudart)
add_library(hp_dnn STATIC ${dnn_sources} exec/cuda/runtime/cuda.c $<TARGET_OBJECTS:hp_dnn_check>)
target_include_directories(hp_dnn SYSTEM PUBLIC ${CUDNN_INCLUDE} ${NCCL_INCLUDE})
target_link_libraries(hp_dnn PUBLIC view_exec_cuda_dnn hp_lib_plan ${CUDNN_LIBRARY} CUDA::cublasLt CUDA::cudart)

file(GLOB cuda_sources CONFIGURE_DEPENDS exec/cuda/*.c exec/cuda/runtime/*.c exec/cuda/nccl/*.c exec/cuda/train/*.c
     exec/cuda/infer/*.c exec/cuda/*/*.cu)
list(REMOVE_ITEM cuda_sources ${CMAKE_SOURCE_DIR}/exec/cuda/runtime/cuda.c ${CMAKE_SOURCE_DIR}/exec/cuda/dnn/dnn_check.cu)
add_library(hplan-cuda MODULE ${cuda_sources})
set_target_properties(hplan-cuda PROPERTIES LINKER_LANGUAGE C CUDA_STANDARD 17 CUDA_VISIBILITY_PRESET hidden)
target_link_libraries(hplan-cuda PRIVATE view_exec_cuda hp_dnn hp_lib_exec hp_lib_traces hp_lib_plan ${NCCL_LIBRARY} CUDA::cudart ${CMAKE_DL_LIBS})
target_link_options(hplan-cuda PRIVATE -Wl,--exclude-libs,ALL)
if(NOT HPLAN_SANITIZE AND NOT HPLAN_FUZZ) # clang's sanitizers are only in the program
  target_link_options(hplan-cuda PRIVATE -Wl,--no-undefined)
endif()
# products and sums are rounded as written; kernels fuse explicitly
target_compile_options(hplan-cuda PRIVATE
  $<$<COMPILE_LANGUAGE:CUDA>:--fmad=false;-Xcompiler=-Wall,-Wextra;$<$<BOOL:${HPLAN_WERROR}>:--Werror=all-warnings>>)
# without a GPU, tests only compile the kernels: optimising them takes five times as long
if(HP_CUDA_CHECK)
  foreach(target hplan-cuda hp_dnn_check)
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:-Xcicc=-O1;-Xptxas=-O1>)
  endforeach()
endif()
