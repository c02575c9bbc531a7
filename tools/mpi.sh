#!/bin/sh
# Builds, runs and tests examples/mpi against the build in directory $1, on Open MPI and on MPICH,
# with Python from the environment in directory $2. What is missing is installed from Debian.
set -eu
build=$1
venv=$2
out=build/mpi

fail() {
    echo "error: $*" >&2
    exit 1
}

packages=
command -v mpicc.openmpi >/dev/null || packages="openmpi-bin libopenmpi-dev"
command -v mpicc.mpich >/dev/null || packages="$packages mpich libmpich-dev"
echo '#include <jansson.h>' | cc -E - >/dev/null 2>&1 || packages="$packages libjansson-dev"
if [ "$packages" ]; then
    echo "==> from Debian: $packages"
    sudo=
    [ "$(id -u)" = 0 ] || sudo=sudo
    # shellcheck disable=SC2086 # words
    { $sudo apt-get -qq update &&
        $sudo apt-get -qq install -y --no-install-recommends $packages >/dev/null; } ||
        fail "install these packages, or what your system calls them: $packages"
fi

# Open MPI needs two confirmations to run as root, and one to run more ranks than there are cores.
if [ "$(id -u)" = 0 ]; then
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
fi
export OMPI_MCA_rmaps_base_oversubscribe=1

if command -v ninja >/dev/null; then export CMAKE_GENERATOR=Ninja; fi
cmake --install "$build" --prefix "$out/installed" >/dev/null
for mpi in openmpi mpich; do
    echo "==> mpi: build for $mpi"
    cmake -S examples/mpi -B "$out/$mpi" -DMPI_C_COMPILER=mpicc.$mpi \
        -DCMAKE_PREFIX_PATH="$PWD/$out/installed" >/dev/null
    cmake --build "$out/$mpi" --parallel "$(getconf _NPROCESSORS_ONLN)"
done
for mpi in openmpi mpich; do
    echo "==> mpi: scatter, on $mpi"
    for ranks in 1 2 4; do
        mpirun.$mpi -n $ranks "$out/$mpi/scatter"
    done
done
for mpi in openmpi mpich; do
    echo "==> mpi: test on $mpi, against NumPy"
    "$venv/bin/python" examples/mpi/check.py "$out/$mpi" mpirun.$mpi
done
