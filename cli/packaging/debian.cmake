# debian.cmake - a Debian package of what cmake --install leaves: cpack -G DEB, or cli/packaging/deb.sh, which builds it, too.
set(CPACK_PACKAGE_NAME hplan)
set(CPACK_PACKAGE_VERSION ${HPLAN_PACKAGED})
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_PACKAGE_CONTACT "hplan maintainers <maintainers@hplan.invalid>" CACHE STRING "who answers for the package")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "plan, simulate and run parallel training of neural networks")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION
    "Finds the combination of data, pipeline, spatial, channel and tensor
parallelism that trains a network fastest on given machines, runs exactly
that plan, and compares the prediction with the measurement.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_DEPENDS openmpi-bin)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "gnuplot-nox, python3")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "python3-pandas, sqlite3, dataset-fashion-mnist")
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_SOURCE_DIR}/cli/packaging/debian_files.cmake)
include(CPack)
