# Builds both libraries with cargo, and declares the targets libsplit::libsplit (shared) and
# libsplit::libsplit-static.

# cargo leaves these options of LLVM out if RUSTFLAGS is set. Given twice, they do the same.
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS .cargo/config.toml)
file(READ .cargo/config.toml cargo_config)
string(REGEX MATCHALL "-Cllvm-args=[^\"]+" rustc_flags "${cargo_config}")
if(LIBSPLIT_TEST_SWITCH)
    list(APPEND rustc_flags --cfg libsplit_test_switch)
endif()
# Outlined atomics would ask the C library which instructions the CPU has, and the static library needs no C library.
if(rust_target MATCHES "^aarch64")
    list(APPEND rustc_flags -C target-feature=-outline-atomics)
endif()

# Each system's file names the libraries. The shared one is named after its full version, with symbolic links for
# the names that programs load and link, where the system has such names. It says what cargo builds, and how the
# libraries are made from that:
#
#   static_lib, shared_lib, soname, links   the names; the last of the links is the one for the linker
#   import_lib                              on Windows
#   static_link                             another name of the static library, for pkg-config, or nothing
#   debug_dir                               where the file for debuggers is, or nothing
#   crate_types, cargo_lib                  what cargo builds
#   link_steps                              commands that follow
#   built_static_lib, built_shared_lib      the results
set(static_lib ${CMAKE_STATIC_LIBRARY_PREFIX}split${CMAKE_STATIC_LIBRARY_SUFFIX})
set(cargo_static_lib ${CMAKE_STATIC_LIBRARY_PREFIX}libsplit${CMAKE_STATIC_LIBRARY_SUFFIX})
set(cargo_out ${LIBSPLIT_CARGO_DIR}/${rust_target}/$<IF:${is_debug},debug,capi>)
set(stage_dir ${PROJECT_BINARY_DIR}/lib)
set(stage ${CMAKE_COMMAND} -E copy_if_different)
file(MAKE_DIRECTORY ${stage_dir})
if(WIN32)
    include(cmake/windows.cmake)
elseif(APPLE)
    include(cmake/macos.cmake)
else()
    include(cmake/elf.cmake)
endif()

# Always run cargo, which knows best what is out of date, and stage the files that have changed.  The command is
# 'cargo rustc' because 'cargo build' also builds the crate type 'lib', which silently turns LTO off.
add_custom_target(libsplit-build ALL
    COMMAND ${cargo} rustc --lib --locked ${cargo_flags} --target-dir ${LIBSPLIT_CARGO_DIR}
            --profile $<IF:${is_debug},dev,capi>
            $<$<CONFIG:RelWithDebInfo>:--config=profile.capi.debug=2>
            --crate-type ${crate_types} --no-default-features
            --features capi$<$<BOOL:${LIBSPLIT_AVX512}>:,avx512>
            -- ${rustc_flags}
    ${link_steps}
    COMMAND ${stage} ${built_shared_lib} ${stage_dir}/${shared_lib}
    COMMAND ${stage} ${built_static_lib} ${stage_dir}/${static_lib}
    BYPRODUCTS ${stage_dir}/${shared_lib} ${stage_dir}/${static_lib}
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
    COMMENT "Building libsplit with cargo"
    COMMAND_EXPAND_LISTS USES_TERMINAL VERBATIM)
foreach(link ${links})
    file(CREATE_LINK ${shared_lib} ${stage_dir}/${link} SYMBOLIC)
endforeach()
if(import_lib)
    add_custom_command(TARGET libsplit-build POST_BUILD
        COMMAND ${stage} ${link_dir}/${import_lib} ${stage_dir}
        BYPRODUCTS ${stage_dir}/${import_lib})
endif()

# Declare the targets. The same file does this for installed libraries.
set(TARGETS_shared_dir ${stage_dir})
set(TARGETS_lib_dir ${stage_dir})
set(TARGETS_include_dir ${PROJECT_SOURCE_DIR}/include)
configure_file(cmake/libsplit-targets.cmake.in in-tree/libsplit-targets.cmake @ONLY)
include(${PROJECT_BINARY_DIR}/in-tree/libsplit-targets.cmake)
add_dependencies(libsplit::libsplit libsplit-build)
add_dependencies(libsplit::libsplit-static libsplit-build)
