# The libraries on Linux and other systems with ELF files. The shared library names libc, so that the loader makes libc
# ready first. Both keep .eh_frame, by which debuggers find a function's caller; it names nothing outside of them.
include(cmake/linking.cmake)
include(cmake/one_object.cmake)
set(cargo_lib liblibsplit.so) # in test builds
set(shared_lib libsplit.so.${PROJECT_VERSION})
set(soname libsplit.so.${soversion})
set(links ${soname} libsplit.so)
if(ANDROID) # whose packages hold libraries that are named lib*.so
    set(shared_lib libsplit.so)
    set(soname libsplit.so)
    set(links)
endif()
set(import_lib)
set(static_link ${stage_dir}/libsplit-static.a) # for -lsplit-static
file(CREATE_LINK ${static_lib} ${static_link} SYMBOLIC)

include(CheckLinkerFlag)
check_linker_flag(C -Wl,-z,noseparate-code LIBSPLIT_HAS_NOSEPARATE_CODE) # gold does not have it
if(LIBSPLIT_HAS_NOSEPARATE_CODE)
    list(APPEND linker_flags -Wl,-z,noseparate-code)
endif()

set(built_shared_lib ${link_dir}/${shared_lib})
set(debug_dir ${PROJECT_BINARY_DIR}/debug)
set(link_steps ${object_steps}
    COMMAND ${linker} -shared -nostdlib ${linker_flags} -Wl,-soname,${soname} -Wl,--build-id=sha1
            -Wl,--gc-sections -Wl,-z,relro,-z,now,-z,noexecstack
            -o ${link_dir}/with-symbols.so ${link_dir}/libsplit.o -Wl,--no-as-needed -lc
    COMMAND ${CMAKE_OBJCOPY} $<${is_stripped}:--strip-all> $<${is_stripped}:--remove-section=.comment>
            ${link_dir}/with-symbols.so ${built_shared_lib}
    COMMAND ${CMAKE_COMMAND} -D OBJCOPY=${CMAKE_OBJCOPY} -D READELF=${CMAKE_READELF}
            -D LIBRARY=${link_dir}/with-symbols.so -D DIRECTORY=${debug_dir}
            -P ${PROJECT_SOURCE_DIR}/cmake/debug_file.cmake)
