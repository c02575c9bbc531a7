# Finds the Rust target that is built for: the C compiler's, in Rust's words.

# libsplit_rust_target(RESULT HOST), where HOST is the target for which rustc builds if nobody asks for another.
function(libsplit_rust_target result host)
    # An ordinary build on this machine. The C compiler may still build for 32 bits, as with -m32.
    if(NOT CMAKE_CROSSCOMPILING AND NOT WIN32 AND NOT APPLE)
        if(CMAKE_SIZEOF_VOID_P EQUAL 4)
            string(REGEX REPLACE "^x86_64-" "i686-" host "${host}")
        endif()
        set(${result} ${host} PARENT_SCOPE)
        return()
    endif()

    set(processor ${CMAKE_SYSTEM_PROCESSOR})
    if(APPLE AND CMAKE_OSX_ARCHITECTURES)
        set(processor ${CMAKE_OSX_ARCHITECTURES})
    endif()
    string(TOLOWER "${processor}" name)
    set(cpu)
    foreach(row IN ITEMS
            "x86_64|amd64 x86_64"
            "i[3-6]86|x86 i686"
            "aarch64|arm64 aarch64"
            "armv7.* armv7"
            "riscv64 riscv64gc"
            "ppc64le|powerpc64le powerpc64le"
            "ppc64|powerpc64 powerpc64"
            "s390x s390x"
            "loongarch64 loongarch64")
        string(REGEX MATCH "^(.*) (.*)$" row "${row}")
        set(rust_name ${CMAKE_MATCH_2})
        if(name MATCHES "^(${CMAKE_MATCH_1})$")
            set(cpu ${rust_name})
            break()
        endif()
    endforeach()

    set(system)
    if(CMAKE_SYSTEM_NAME STREQUAL "Linux")
        set(system unknown-linux-gnu)
    elseif(CMAKE_SYSTEM_NAME STREQUAL "Android")
        set(system linux-android)
    elseif(CMAKE_SYSTEM_NAME STREQUAL "Darwin")
        set(system apple-darwin)
    elseif(CMAKE_SYSTEM_NAME STREQUAL "Windows" AND MSVC)
        set(system pc-windows-msvc)
    elseif(CMAKE_SYSTEM_NAME STREQUAL "Windows")
        set(system pc-windows-gnu)
    elseif(CMAKE_SYSTEM_NAME MATCHES "^(Free|Net|Open)BSD$")
        string(TOLOWER "unknown-${CMAKE_SYSTEM_NAME}" system)
    endif()
    if(cpu STREQUAL "armv7" AND system MATCHES "gnu$")
        string(APPEND system eabihf)
    elseif(cpu STREQUAL "armv7" AND system MATCHES "android$")
        string(APPEND system eabi)
    elseif(cpu STREQUAL "aarch64" AND system STREQUAL "pc-windows-gnu")
        string(APPEND system llvm)
    endif()

    if(NOT cpu OR NOT system)
        message(FATAL_ERROR
                "libsplit does not know the Rust target for ${CMAKE_SYSTEM_NAME} on '${processor}': set "
                "LIBSPLIT_CARGO_TARGET to one that 'rustc --print target-list' prints, and install it with "
                "'rustup target add'")
    endif()
    set(${result} ${cpu}-${system} PARENT_SCOPE)
endfunction()
