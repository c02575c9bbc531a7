# The libraries on Windows. Both linkers make a DLL without start-up code, for which memcpy and memset suffice.
include(cmake/linking.cmake)
set(cargo_lib libsplit.dll) # in test builds
set(shared_lib libsplit.dll)
set(soname)
set(links)
set(static_link)
set(debug_dir)
set(link_steps)
enable_language(RC)
configure_file(cmake/version.rc.in link/version.rc @ONLY)

if(MSVC)
    # Microsoft's linker cannot link objects into one, so the static library is cargo's archive.
    set(crate_types staticlib)
    set(import_lib libsplit.dll.lib)
    set(built_static_lib ${cargo_out}/${cargo_static_lib})
    set(built_shared_lib ${link_dir}/${shared_lib})
    list(JOIN functions "\n" exports)
    file(CONFIGURE OUTPUT link/libsplit.def CONTENT "LIBRARY libsplit\nEXPORTS\n@exports@\n" @ONLY)
    # A path that begins with a slash may look like an option: /check/... is what /c takes. Commands run in the source
    # directory.
    file(RELATIVE_PATH from_source ${PROJECT_SOURCE_DIR} ${link_dir})
    set(link_steps
        COMMAND ${CMAKE_RC_COMPILER} /fo ${from_source}/version.res ${from_source}/version.rc
        COMMAND ${CMAKE_LINKER} /nologo /dll /noentry /nodefaultlib /opt:ref /incremental:no ${linker_flags}
                /def:${link_dir}/libsplit.def /implib:${link_dir}/${import_lib} /out:${built_shared_lib}
                ${cargo_out}/${cargo_static_lib} ${link_dir}/version.res vcruntime.lib msvcrt.lib)
else()
    # An import library of this name is what -lsplit finds first; with -static, it finds the archive.
    include(cmake/one_object.cmake)
    set(import_lib libsplit.dll.a)
    set(built_shared_lib ${link_dir}/${shared_lib})
    file(MAKE_DIRECTORY ${link_dir}/with-symbols)
    set(link_steps ${object_steps}
        COMMAND ${CMAKE_RC_COMPILER} -O coff ${link_dir}/version.rc ${link_dir}/version.o
        COMMAND ${linker} -shared -nostdlib ${linker_flags} -Wl,--entry=0 -Wl,--gc-sections
                -Wl,--dynamicbase,--nxcompat,--no-insert-timestamp $<$<EQUAL:${CMAKE_SIZEOF_VOID_P},8>:-Wl,--high-entropy-va>
                -Wl,--out-implib,${link_dir}/${import_lib} -o ${link_dir}/with-symbols/${shared_lib}
                ${link_dir}/libsplit.o ${link_dir}/version.o -lmsvcrt
        COMMAND ${CMAKE_OBJCOPY} $<${is_stripped}:--strip-all>
                ${link_dir}/with-symbols/${shared_lib} ${built_shared_lib})
endif()
