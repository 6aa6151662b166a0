# machines.cmake - what a plan runs on
hp_folder(machines/device SEES networks/graph)
hp_folder(machines SEES machines/device LINK PkgConfig::HWLOC)
target_compile_definitions(hp_machines PRIVATE HPLAN_MACHINE_DIR="${CMAKE_SOURCE_DIR}/machines/data")
file(GLOB machine_data CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/machines/data/*.machine)
set_source_files_properties(${CMAKE_SOURCE_DIR}/machines/shipped.c PROPERTIES OBJECT_DEPENDS "${machine_data}") # embedded
