# debian_files.cmake - run by cpack on what is installed: Debian wants pages and changes compressed, and a copyright.
set(share ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/usr/share)
configure_file(${CMAKE_CURRENT_LIST_DIR}/copyright ${share}/doc/hplan/copyright COPYONLY)
configure_file(${CMAKE_CURRENT_LIST_DIR}/../../CHANGELOG.md ${share}/doc/hplan/changelog COPYONLY)
string(TIMESTAMP now "%a, %d %b %Y %H:%M:%S +0000" UTC)
file(WRITE ${share}/doc/hplan/changelog.Debian "hplan (${CPACK_PACKAGE_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}) unstable; urgency=low

  * Packaged; changelog.gz says what is new.

 -- ${CPACK_PACKAGE_CONTACT}  ${now}
")
file(REMOVE ${share}/doc/hplan/LICENSE)
file(GLOB pages ${share}/man/man*/*.?)
execute_process(COMMAND gzip -9nf ${pages} ${share}/doc/hplan/changelog ${share}/doc/hplan/changelog.Debian COMMAND_ERROR_IS_FATAL ANY)
