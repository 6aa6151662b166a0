# plan.cmake - what is to be done. Folders from the ground up: each sees only folders above it in this list.
hp_folder(plan/base LINK PkgConfig::SQLITE PkgConfig::XXHASH PkgConfig::JANSSON)
target_compile_definitions(hp_plan_base PRIVATE HPLAN_VERSION="${PROJECT_VERSION}" HPLAN_COMMIT="${HPLAN_COMMIT}")
set_source_files_properties(plan/base/rng.c PROPERTIES COMPILE_OPTIONS -O3) # its rounds unrolled
hp_folder(plan/graph SEES plan/base LINK PkgConfig::JANSSON)
hp_folder(plan/nets SEES plan/graph)
hp_folder(plan/device SEES plan/graph)
hp_folder(plan/machine SEES plan/device LINK PkgConfig::HWLOC)
target_compile_definitions(hp_plan_machine PRIVATE HPLAN_MACHINE_DIR="${CMAKE_SOURCE_DIR}/plan/machine/data")
file(GLOB machine_data CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/plan/machine/data/*.machine)
set_source_files_properties(${CMAKE_SOURCE_DIR}/plan/machine/shipped.c PROPERTIES OBJECT_DEPENDS "${machine_data}") # embedded
hp_folder(plan/tiles SEES plan/graph)
hp_folder(plan/collectives SEES plan/base)
hp_folder(plan/codec SEES plan/base plan/graph)
hp_folder(plan/strategy SEES plan/device plan/tiles plan/collectives plan/codec)
hp_folder(plan/program SEES plan/graph plan/tiles plan/strategy)
hp_folder(plan/replay SEES plan/program)
hp_folder(plan/memory SEES plan/program)
hp_folder(plan/checkpoint SEES plan/program LINK PkgConfig::JANSSON PkgConfig::XXHASH)
hp_folder(plan/check SEES plan/program plan/memory)
hp_folder(plan/lower SEES plan/program plan/memory plan/check plan/machine)
hp_folder(plan/store SEES plan/lower plan/machine LINK PkgConfig::SQLITE)
hp_archive(plan FOLDERS plan/base plan/graph plan/nets plan/device plan/machine plan/tiles plan/strategy plan/collectives plan/codec
           plan/program plan/replay
           plan/memory plan/checkpoint plan/check plan/lower plan/store
           LINK PkgConfig::SQLITE PkgConfig::JANSSON PkgConfig::XXHASH PkgConfig::HWLOC)

# plan/onnx is a library of its own: hplan-exec links no protobuf-c. Its messages are generated from onnx.proto.
set(onnx_generated ${CMAKE_BINARY_DIR}/generated/onnx)
file(MAKE_DIRECTORY ${onnx_generated})
add_custom_command(OUTPUT ${onnx_generated}/onnx.pb-c.c ${onnx_generated}/onnx.pb-c.h
  COMMAND ${PROTOC_C} --c_out=${onnx_generated} --proto_path=${ONNX_PROTO}/onnx ${ONNX_PROTO}/onnx/onnx.proto
  DEPENDS ${ONNX_PROTO}/onnx/onnx.proto)
add_library(hp_onnx_proto STATIC ${onnx_generated}/onnx.pb-c.c)
target_compile_options(hp_onnx_proto PRIVATE -w)
target_include_directories(hp_onnx_proto SYSTEM PUBLIC ${onnx_generated})
target_link_libraries(hp_onnx_proto PUBLIC PkgConfig::PROTOBUF_C)
hp_folder(plan/onnx SEES plan/graph plan/tiles LINK hp_onnx_proto)
hp_folder(plan/onnx/ops SEES plan/onnx LINK hp_onnx_proto)
hp_folder(plan/onnx/fold SEES plan/onnx LINK hp_onnx_proto)
hp_folder(plan/onnx/tokens SEES plan/onnx plan/onnx/ops LINK hp_onnx_proto)
hp_folder(plan/onnx/int8 SEES plan/onnx plan/onnx/ops LINK hp_onnx_proto)
hp_archive(onnx FOLDERS plan/onnx plan/onnx/ops plan/onnx/fold plan/onnx/tokens plan/onnx/int8 LINK hp_lib_plan hp_onnx_proto)
