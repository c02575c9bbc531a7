# The libraries on macOS. The shared one is linked from cargo's archive and exports only the header's functions. Apple's
# linker and LLVM's have no common way to link objects into one, so the static one is made of the object with the whole
# library in it, which depends on nothing else in the archive but what libSystem has, too; only Debug builds need more.
include(cmake/linking.cmake)
set(crate_types staticlib)
set(cargo_lib liblibsplit.dylib) # in test builds
set(shared_lib libsplit.${PROJECT_VERSION}.dylib)
set(soname @rpath/libsplit.${soversion}.dylib)
set(links libsplit.${soversion}.dylib libsplit.dylib)
set(import_lib)
set(static_link)
set(debug_dir)
set(built_shared_lib ${link_dir}/${shared_lib})
set(built_static_lib ${link_dir}/${static_lib})

list(TRANSFORM functions PREPEND "-Wl,-u,_" OUTPUT_VARIABLE wanted)
set(link_steps
    COMMAND ${linker} -dynamiclib -nodefaultlibs ${linker_flags} ${wanted} -Wl,-exported_symbol,_libsplit_*
            -Wl,-install_name,${soname} -Wl,-current_version,${PROJECT_VERSION}
            -Wl,-compatibility_version,${soversion} -Wl,-dead_strip $<${is_stripped}:-Wl,-x,-S>
            -o ${built_shared_lib} ${cargo_out}/${cargo_static_lib} -lSystem
    COMMAND ${CMAKE_COMMAND} -D AR=${CMAKE_AR} -D ARCHIVE=${cargo_out}/${cargo_static_lib}
            -D DIRECTORY=${link_dir}/static -D OUTPUT=${built_static_lib} -D WHOLE=${is_debug}
            -D STRIP=$<${is_stripped}:${CMAKE_STRIP}> -P ${PROJECT_SOURCE_DIR}/cmake/own_object.cmake)
