# cargo has to be on the machine: vcpkg has no Rust. The archive has all crates in it.
vcpkg_download_distfile(archive
    URLS "@url@"
    FILENAME "libsplit-@version@-src.tar.gz"
    SHA512 @sha512@)
vcpkg_extract_source_archive(source ARCHIVE "${archive}")

vcpkg_check_features(OUT_FEATURE_OPTIONS features FEATURES avx512 LIBSPLIT_AVX512)
vcpkg_cmake_configure(
    SOURCE_PATH "${source}"
    OPTIONS ${features} -DLIBSPLIT_BUILD_TESTS=OFF -DLIBSPLIT_BUILD_EXAMPLES=OFF -DLIBSPLIT_BUILD_BENCH=OFF)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/libsplit)
vcpkg_fixup_pkgconfig()

# Both libraries are built, and vcpkg wants one of them.
if(VCPKG_LIBRARY_LINKAGE STREQUAL "static")
    set(unwanted libsplit.so libsplit.so.0 libsplit.so.@version@ libsplit.dylib libsplit.0.dylib libsplit.@version@.dylib
        libsplit.dll.a libsplit.dll.lib)
    set(unwanted_names libsplit)
    file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/bin" "${CURRENT_PACKAGES_DIR}/debug/bin")
else()
    set(unwanted libsplit.a libsplit-static.a split.lib)
    set(unwanted_names libsplit-static)
endif()
foreach(directory lib debug/lib)
    list(TRANSFORM unwanted PREPEND "${CURRENT_PACKAGES_DIR}/${directory}/" OUTPUT_VARIABLE files)
    file(REMOVE ${files} "${CURRENT_PACKAGES_DIR}/${directory}/pkgconfig/${unwanted_names}.pc")
endforeach()
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share"
                    "${CURRENT_PACKAGES_DIR}/share/licenses")
vcpkg_install_copyright(FILE_LIST "${source}/LICENSE-MIT" "${source}/LICENSE-APACHE")
