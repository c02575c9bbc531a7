# The libraries on Linux and other systems with ELF files.
#
# Cargo's archive contains much that is not needed. It is linked into one object that exports only the header's
# functions, from which both libraries are made: nothing in them can collide with another static library, whether it
# is written in Rust or not. The static library depends on no other, because every program has the memcpy and so on
# that it calls. The shared library names libc, so that the loader makes libc ready first. (An ar with an older LLVM
# would fail on the bitcode that cargo leaves in objects.)
set(crate_types staticlib)
set(cargo_lib liblibsplit.so) # in test builds
set(shared_lib libsplit.so.${PROJECT_VERSION})
set(soname libsplit.so.${soversion})
set(links ${soname} libsplit.so)
set(import_lib)
set(static_link ${stage_dir}/libsplit-static.a) # for -lsplit-static
file(CREATE_LINK ${static_lib} ${static_link} SYMBOLIC)

set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS include/libsplit.h)
file(STRINGS include/libsplit.h functions REGEX "^(LIBSPLIT_API )?[a-z].*libsplit_[a-z_]+\\(")
list(FILTER functions EXCLUDE REGEX "^static inline ")
list(TRANSFORM functions REPLACE ".*(libsplit_[a-z_]+)\\(.*" "-Wl,-u,\\1")

# The C compiler as CMake would start it to link.
separate_arguments(c_flags NATIVE_COMMAND "${CMAKE_C_COMPILER_ARG1} ${CMAKE_C_FLAGS}")
separate_arguments(linker_flags NATIVE_COMMAND "${CMAKE_SHARED_LINKER_FLAGS}")
set(linker ${CMAKE_C_COMPILER} ${c_flags})
if(CMAKE_C_COMPILER_TARGET)
    list(APPEND linker ${CMAKE_C_COMPILE_OPTIONS_TARGET}${CMAKE_C_COMPILER_TARGET})
endif()
if(CMAKE_SYSROOT)
    list(APPEND linker ${CMAKE_C_COMPILE_OPTIONS_SYSROOT}${CMAKE_SYSROOT})
endif()

include(CheckLinkerFlag)
check_linker_flag(C -Wl,-z,noseparate-code LIBSPLIT_HAS_NOSEPARATE_CODE) # gold does not have it
if(LIBSPLIT_HAS_NOSEPARATE_CODE)
    list(APPEND linker_flags -Wl,-z,noseparate-code)
endif()

set(link_dir ${PROJECT_BINARY_DIR}/link)
set(debug_dir ${PROJECT_BINARY_DIR}/debug)
file(MAKE_DIRECTORY ${link_dir}/static)
set(built_shared_lib ${link_dir}/${shared_lib})
set(built_static_lib ${link_dir}/${static_lib})
set(link_steps
    COMMAND ${linker} -r -nostdlib ${functions} -o ${link_dir}/libsplit.o ${cargo_out}/${cargo_static_lib}
    COMMAND ${CMAKE_OBJCOPY} --wildcard --keep-global-symbol=libsplit_*
            --remove-section=.llvmbc --remove-section=.llvmcmd ${link_dir}/libsplit.o
    COMMAND ${CMAKE_OBJCOPY} $<${is_stripped}:--strip-debug>
            ${link_dir}/libsplit.o ${link_dir}/static/libsplit.o
    COMMAND ${CMAKE_COMMAND} -E rm -f ${built_static_lib}
    COMMAND ${CMAKE_AR} rcs ${built_static_lib} ${link_dir}/static/libsplit.o
    COMMAND ${linker} -shared -nostdlib ${linker_flags} -Wl,-soname,${soname} -Wl,--build-id=sha1
            -Wl,--gc-sections -Wl,-z,relro,-z,now,-z,noexecstack
            -o ${link_dir}/with-symbols.so ${link_dir}/libsplit.o -Wl,--no-as-needed -lc
    COMMAND ${CMAKE_OBJCOPY} $<${is_stripped}:--strip-all> $<${is_stripped}:--remove-section=.comment>
            ${link_dir}/with-symbols.so ${built_shared_lib}
    COMMAND ${CMAKE_COMMAND} -D OBJCOPY=${CMAKE_OBJCOPY} -D READELF=${CMAKE_READELF}
            -D LIBRARY=${link_dir}/with-symbols.so -D DIRECTORY=${debug_dir}
            -P ${PROJECT_SOURCE_DIR}/cmake/debug_file.cmake)
