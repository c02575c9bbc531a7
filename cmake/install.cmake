# Installs the libraries, the headers and the licences.  One component has what programs need at run time, another what
# they need to be built, a third what debuggers need; it is installed only if it is requested.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)
set(shared_dir ${CMAKE_INSTALL_LIBDIR})
if(WIN32)
    set(shared_dir ${CMAKE_INSTALL_BINDIR})
endif()
set(development COMPONENT development)
list(TRANSFORM links PREPEND ${stage_dir}/ OUTPUT_VARIABLE runtime_links)
list(POP_BACK runtime_links linker_name)
set(shared_files PROGRAMS)
if(CMAKE_INSTALL_SO_NO_EXE) # on Debian
    set(shared_files FILES)
endif()
install(${shared_files} ${stage_dir}/${shared_lib} ${runtime_links} DESTINATION ${shared_dir}
        COMPONENT runtime)
if(links)
    install(${shared_files} ${linker_name} DESTINATION ${shared_dir} ${development})
endif()
install(FILES ${stage_dir}/${static_lib} ${static_link} DESTINATION ${CMAKE_INSTALL_LIBDIR} ${development})
if(import_lib)
    install(FILES ${stage_dir}/${import_lib} DESTINATION ${CMAKE_INSTALL_LIBDIR} ${development})
endif()
if(debug_dir)
    install(DIRECTORY ${debug_dir}/ DESTINATION lib/debug COMPONENT debug EXCLUDE_FROM_ALL)
endif()
install(FILES include/libsplit.h include/libsplit.hpp include/libsplit_dlpack.h
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} ${development})
install(FILES LICENSE-MIT LICENSE-APACHE DESTINATION ${CMAKE_INSTALL_DATADIR}/licenses/libsplit)

include(cmake/pkgconfig.cmake)

# Generate and install the CMake package.
set(TARGETS_shared_dir ${shared_dir})
set(TARGETS_lib_dir ${CMAKE_INSTALL_LIBDIR})
set(TARGETS_include_dir ${CMAKE_INSTALL_INCLUDEDIR})
foreach(dir shared_dir lib_dir include_dir)
    cmake_path(ABSOLUTE_PATH TARGETS_${dir} BASE_DIRECTORY "\${PACKAGE_PREFIX_DIR}")
endforeach()
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/libsplit)
configure_file(cmake/libsplit-targets.cmake.in libsplit-targets.cmake @ONLY)
configure_package_config_file(cmake/libsplit-config.cmake.in libsplit-config.cmake
    INSTALL_DESTINATION ${package_dir} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(libsplit-config-version.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${PROJECT_BINARY_DIR}/libsplit-config.cmake
              ${PROJECT_BINARY_DIR}/libsplit-config-version.cmake
              ${PROJECT_BINARY_DIR}/libsplit-targets.cmake
        DESTINATION ${package_dir} ${development})
