# How cargo is run: for which target, optimised or not, and where it puts its files.
find_program(LIBSPLIT_CARGO cargo HINTS "$ENV{HOME}/.cargo/bin" DOC "The cargo program")
if(NOT LIBSPLIT_CARGO)
    message(FATAL_ERROR "cargo not found: install Rust with rustup, or set LIBSPLIT_CARGO")
endif()
set(LIBSPLIT_CARGO_TARGET "" CACHE STRING
    "Rust target triple to build for; empty means the one of the C compiler")
set(LIBSPLIT_CARGO_DIR ${PROJECT_BINARY_DIR}/cargo CACHE PATH
    "Where cargo keeps what it builds; builds of the same sources may share it")

# The target is always named, so that no configuration of cargo decides it, nor where the files are.
execute_process(COMMAND ${LIBSPLIT_CARGO} -vV WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
                OUTPUT_VARIABLE cargo_version COMMAND_ERROR_IS_FATAL ANY)
string(REGEX REPLACE ".*\nhost: ([^\n]+)\n.*" "\\1" rust_host "${cargo_version}")
list(LENGTH CMAKE_OSX_ARCHITECTURES architectures)
if(architectures GREATER 1)
    message(FATAL_ERROR "libsplit is built for one architecture at a time, not for ${CMAKE_OSX_ARCHITECTURES}: build it "
                        "for each, and join the libraries with lipo -create")
endif()
set(rust_target ${LIBSPLIT_CARGO_TARGET})
if(NOT rust_target)
    include(cmake/rust_target.cmake)
    libsplit_rust_target(rust_target "${rust_host}")
endif()
set(cargo ${LIBSPLIT_CARGO})
if(NOT rust_target STREQUAL rust_host)
    string(TOUPPER "${rust_target}" triple)
    string(MAKE_C_IDENTIFIER "${triple}" triple)
    set(rust_linker ${CMAKE_C_COMPILER})
    if(MSVC)
        set(rust_linker ${CMAKE_LINKER})
    endif()
    set(cargo ${CMAKE_COMMAND} -E env CARGO_TARGET_${triple}_LINKER=${rust_linker} ${cargo})
endif()
set(cargo_flags --target ${rust_target})

# What a build type means here: Debug is unoptimised, and RelWithDebInfo keeps everything for debuggers.
set(is_debug $<AND:$<CONFIG:Debug>,$<NOT:$<BOOL:${LIBSPLIT_OPTIMIZE}>>>)
set(is_stripped $<NOT:$<OR:${is_debug},$<CONFIG:RelWithDebInfo>>>)
