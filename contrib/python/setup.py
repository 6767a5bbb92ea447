"""The package `inferscope`: contrib/python/build makes its wheel; INFERSCOPE_BUILD names the folder that holds the built `inferscope`."""
import os
import pathlib
import re
import shutil
import sysconfig

from setuptools import Extension, find_packages, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py

HERE = pathlib.Path(__file__).resolve().parent
TOP = pathlib.Path(os.environ.get("INFERSCOPE_SOURCE", HERE.parent.parent)).resolve()
BUILD = pathlib.Path(os.environ.get("INFERSCOPE_BUILD", TOP / "build")).resolve()
VERSION = re.search(r"AC_INIT\(\[inferscope\], \[([^\]]+)\]", (TOP / "configure.ac").read_text())[1]

if sysconfig.get_config_var("Py_GIL_DISABLED"):
    raise SystemExit("inferscope: free-threaded builds of Python are not supported yet")


class with_binary(build_py):
    """The program, which has the collector inside of it, and the library for C go into the package."""

    def run(self):
        super().run()
        for source, place in ((BUILD / "inferscope", "_bin"), (BUILD / "libinferscope-profiler.so", "_bin"), (TOP / "src/profiler/profiler.h", "include/inferscope")):
            folder = pathlib.Path(self.build_lib) / "inferscope" / place
            folder.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, folder / source.name)


class stable(build_ext):
    def build_extension(self, extension):
        extension.include_dirs.append(str(TOP / "src"))
        super().build_extension(extension)


try:
    from wheel.bdist_wheel import bdist_wheel
except ImportError:
    from setuptools.command.bdist_wheel import bdist_wheel


class one_for_all(bdist_wheel):
    def get_tag(self):
        _, _, platform = super().get_tag()
        return "cp38", "abi3", platform


setup(
    name="inferscope", version=VERSION, description="Says where a running Python process spends its time, and what to change", python_requires=">=3.8",
    packages=find_packages("src"), package_dir={"": "src"}, package_data={"inferscope": ["py.typed", "*.pyi", "_bin/*", "include/inferscope/*"]}, zip_safe=False,
    ext_modules=[Extension("inferscope._native", ["src/inferscope/_native.c", "src/inferscope/_scopes.c", "src/inferscope/_metadata.c", "src/inferscope/_enter.c"], depends=["src/inferscope/_scopes.h"], define_macros=[("_GNU_SOURCE", None)], py_limited_api=True, extra_compile_args=["-std=gnu11", "-O2", "-fno-plt"], libraries=["dl", "pthread"])],
    cmdclass={"build_py": with_binary, "build_ext": stable, "bdist_wheel": one_for_all},
    entry_points={"console_scripts": ["inferscope = inferscope._program:main"], "pytest11": ["inferscope = inferscope.pytest_plugin"]},
)
