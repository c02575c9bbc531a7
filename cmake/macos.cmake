# The libraries on macOS. Apple's linker and LLVM's have no common way to link objects into one, so the static library is
# made of the object that has all of libsplit in it, after link-time optimisation; of the others in cargo's archive it
# needs nothing that libSystem does not have, too. Only Debug builds need more. The shared library is linked from the
# static one, and exports only the header's functions.
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
    COMMAND ${CMAKE_COMMAND} -D AR=${CMAKE_AR} -D ARCHIVE=${cargo_out}/${cargo_static_lib}
            -D DIRECTORY=${link_dir}/static -D OUTPUT=${built_static_lib} -D WHOLE=${is_debug}
            -D STRIP=$<${is_stripped}:${CMAKE_STRIP}> -P ${PROJECT_SOURCE_DIR}/cmake/own_object.cmake
    COMMAND ${linker} -dynamiclib -nodefaultlibs ${linker_flags} ${wanted} -Wl,-exported_symbol,_libsplit_*
            -Wl,-install_name,${soname} -Wl,-current_version,${PROJECT_VERSION}
            -Wl,-compatibility_version,${soversion} -Wl,-dead_strip $<${is_stripped}:-Wl,-x,-S>
            -o ${built_shared_lib} ${built_static_lib} -lSystem)
