"""libsplit for Conan 2. It is built from the source archive of a release, and needs cargo and a C compiler on the machine."""

from conan import ConanFile
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout
from conan.tools.files import get, rm, rmdir

import os


class Libsplit(ConanFile):
    name = "libsplit"
    description = "The tensor Split of ONNX and OpenVINO as one small C ABI library"
    license = "MIT OR Apache-2.0"
    url = homepage = "@repository@"
    topics = ("tensor", "split", "onnx", "openvino")
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False], "avx512": [True, False]}
    default_options = {"shared": True, "avx512": True}

    def configure(self):
        # The library is neither C++ nor linked with its standard library.
        self.settings.rm_safe("compiler.cppstd")
        self.settings.rm_safe("compiler.libcxx")

    def layout(self):
        cmake_layout(self)

    def source(self):
        get(self, **self.conan_data["sources"][self.version], strip_root=True)

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables["LIBSPLIT_AVX512"] = bool(self.options.avx512)
        for programs in "TESTS", "EXAMPLES", "BENCH":
            toolchain.cache_variables[f"LIBSPLIT_BUILD_{programs}"] = False
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()
        # Conan makes files for CMake and pkg-config itself.
        library = os.path.join(self.package_folder, "lib")
        rmdir(self, os.path.join(library, "cmake"))
        rmdir(self, os.path.join(library, "pkgconfig"))
        unwanted = ["*.a", "*.lib"] if self.options.shared else ["*.so*", "*.dylib", "*.dll*"]
        for pattern in unwanted:
            rm(self, pattern, library, excludes="*.dll*" if self.options.shared else None)
        if not self.options.shared:
            rmdir(self, os.path.join(self.package_folder, "bin"))

    def package_info(self):
        self.cpp_info.libs = ["split"]
        target = "libsplit::libsplit" if self.options.shared else "libsplit::libsplit-static"
        self.cpp_info.set_property("cmake_file_name", "libsplit")
        self.cpp_info.set_property("cmake_target_name", target)
        self.cpp_info.set_property("pkg_config_name", "libsplit")
