"""Makes the wheel: one package, which carries the tree of git's HEAD; version and needs are the root's."""

import subprocess
import tomllib
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


class BuildWithTree(build_py):
    def run(self) -> None:
        super().run()
        archive = Path(self.build_lib, "gpudyno", "tree.tar.gz").absolute()
        subprocess.run(["git", "-C", ROOT, "archive", "-o", archive, "HEAD"], check=True)


setup(
    version=PROJECT["version"],
    install_requires=PROJECT["dependencies"],
    packages=["gpudyno"],
    cmdclass={"build_py": BuildWithTree},
)
