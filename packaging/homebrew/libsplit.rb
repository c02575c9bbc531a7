class Libsplit < Formula
  desc "Tensor Split of ONNX and OpenVINO as one small C ABI library"
  homepage "@repository@"
  url "@url@"
  sha256 "@sha256@"
  license any_of: ["MIT", "Apache-2.0"]

  depends_on "cmake" => :build
  depends_on "rust" => :build

  def install
    system "cmake", "-S", ".", "-B", "build", "-DLIBSPLIT_BUILD_TESTS=OFF", "-DLIBSPLIT_BUILD_EXAMPLES=OFF",
           "-DLIBSPLIT_BUILD_BENCH=OFF", *std_cmake_args
    system "cmake", "--build", "build", "--target", "libsplit-build"
    system "cmake", "--install", "build"
  end

  test do
    (testpath/"test.c").write <<~C
      #include <libsplit.h>
      #include <stdio.h>
      int main(void) { return puts(libsplit_version_string()) < 0; }
    C
    system ENV.cc, "test.c", "-I#{include}", "-L#{lib}", "-lsplit", "-o", "test"
    assert_equal version.to_s, shell_output("./test").strip
  end
end
