# networks.cmake - what a network is: its layers, what inference makes of them, the built-in ones, and those that are read from ONNX.
hp_folder(networks/graph SEES base LINK PkgConfig::JANSSON)
hp_folder(networks/deploy SEES networks/graph)
hp_folder(networks/nets SEES networks/graph)

# networks/onnx is a library of its own: hplan-exec links no protobuf-c. Its messages are generated from onnx.proto.
set(onnx_generated ${CMAKE_BINARY_DIR}/generated/onnx)
file(MAKE_DIRECTORY ${onnx_generated})
add_custom_command(OUTPUT ${onnx_generated}/onnx.pb-c.c ${onnx_generated}/onnx.pb-c.h
  COMMAND ${PROTOC_C} --c_out=${onnx_generated} --proto_path=${ONNX_PROTO}/onnx ${ONNX_PROTO}/onnx/onnx.proto
  DEPENDS ${ONNX_PROTO}/onnx/onnx.proto)
add_library(hp_onnx_proto STATIC ${onnx_generated}/onnx.pb-c.c)
target_compile_options(hp_onnx_proto PRIVATE -w)
target_include_directories(hp_onnx_proto SYSTEM PUBLIC ${onnx_generated})
target_link_libraries(hp_onnx_proto PUBLIC PkgConfig::PROTOBUF_C)
hp_folder(networks/onnx SEES networks/graph LINK hp_onnx_proto)
hp_folder(networks/onnx/ops SEES networks/onnx LINK hp_onnx_proto)
hp_folder(networks/onnx/fold SEES networks/onnx LINK hp_onnx_proto)
hp_folder(networks/onnx/tokens SEES networks/onnx networks/onnx/ops LINK hp_onnx_proto)
hp_folder(networks/onnx/int8 SEES networks/deploy networks/onnx networks/onnx/ops LINK hp_onnx_proto)
hp_archive(onnx FOLDERS networks/onnx networks/onnx/ops networks/onnx/fold networks/onnx/tokens networks/onnx/int8 LINK hp_lib_plan hp_onnx_proto)
