# Generates and installs the files for pkg-config, one for the shared library and one for the static library: both
# libraries are in one directory, where -lsplit means the shared one even with 'pkg-config --static'. What CMake and
# Meson make of these files needs a name of the form -lNAME, so on ELF systems the archive has such a name, too.
#
# Paths are relative to the files, so that the installed tree can be moved. In /usr they are absolute: pkg-config then
# leaves out directories that compilers search by themselves, and finds those of a sysroot.
cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX
           BASE_DIRECTORY ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig OUTPUT_VARIABLE pc_up)
cmake_path(RELATIVE_PATH CMAKE_INSTALL_FULL_LIBDIR
           BASE_DIRECTORY ${CMAKE_INSTALL_PREFIX} OUTPUT_VARIABLE pc_libdir)
cmake_path(RELATIVE_PATH CMAKE_INSTALL_FULL_INCLUDEDIR
           BASE_DIRECTORY ${CMAKE_INSTALL_PREFIX} OUTPUT_VARIABLE pc_includedir)
set(pc_dir ${PROJECT_BINARY_DIR}/pkgconfig)

function(generate_pc pc_name pc_libs)
    set(pc_prefix "\${pcfiledir}/${pc_up}")
    configure_file(cmake/libsplit.pc.in ${pc_dir}/relative/${pc_name}.pc @ONLY)
    set(pc_prefix /usr)
    configure_file(cmake/libsplit.pc.in ${pc_dir}/usr/${pc_name}.pc @ONLY)
endfunction()
if(MSVC) # to which -lsplit would mean the static library
    generate_pc(libsplit "\${libdir}/${import_lib}")
else()
    generate_pc(libsplit "-L\${libdir} -lsplit")
endif()
if(static_link)
    generate_pc(libsplit-static "-Wl,--exclude-libs,libsplit-static.a -L\${libdir} -lsplit-static")
else()
    generate_pc(libsplit-static "\${libdir}/${static_lib}")
endif()

# The prefix may be another one than when this was configured.
install(CODE "
    set(kind relative)
    if(CMAKE_INSTALL_PREFIX STREQUAL \"/usr\")
        set(kind usr)
    endif()
    set(directory \"${CMAKE_INSTALL_LIBDIR}/pkgconfig\")
    cmake_path(ABSOLUTE_PATH directory BASE_DIRECTORY \"\${CMAKE_INSTALL_PREFIX}\")
    file(INSTALL \"${pc_dir}/\${kind}/libsplit.pc\" \"${pc_dir}/\${kind}/libsplit-static.pc\"
         DESTINATION \"\${directory}\")" ${development})
