# On Linux, on other systems with ELF files, and with MinGW, cargo's archive is linked into one object that exports only
# the header's functions, from which both libraries are made. The archive contains much that is not needed; nothing in
# the libraries can collide with another static library, whether it is written in Rust or not. The static library
# depends on no other, because every program has the memcpy and so on that it calls. (An ar with an older LLVM would
# fail on the bitcode that cargo leaves in objects.)
#
#   object_steps   commands that make ${link_dir}/libsplit.o and the static library
set(crate_types staticlib)
set(built_static_lib ${link_dir}/${static_lib})
set(prefix)
set(strip --strip-debug)
if(WIN32)
    set(strip --strip-unneeded) # GNU objcopy spoils the table of symbols by --strip-debug
endif()
if(rust_target MATCHES "^i686-pc-windows")
    set(prefix _) # of every C symbol
endif()
list(TRANSFORM functions PREPEND "-Wl,-u,${prefix}" OUTPUT_VARIABLE wanted)
set(object_steps
    COMMAND ${linker} -r -nostdlib -Wl,--gc-sections ${wanted} -o ${link_dir}/libsplit.o
            ${cargo_out}/${cargo_static_lib}
    COMMAND ${CMAKE_OBJCOPY} --wildcard --keep-global-symbol=${prefix}libsplit_* --remove-section=.llvmbc
            --remove-section=.llvmcmd --remove-section=.drectve
            --remove-section=.ARM.ex* --strip-unneeded-symbol=__aeabi_unwind_* ${link_dir}/libsplit.o
    COMMAND ${CMAKE_OBJCOPY} $<${is_stripped}:${strip}>
            ${link_dir}/libsplit.o ${link_dir}/static/libsplit.o
    COMMAND ${CMAKE_COMMAND} -E rm -f ${built_static_lib}
    COMMAND ${CMAKE_AR} rcs ${built_static_lib} ${link_dir}/static/libsplit.o)
