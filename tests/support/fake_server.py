# SPDX-License-Identifier: Apache-2.0
"""A server without privileges: the real supervisor and the real cellad, run by an ordinary user, with
fake_warden.py in the warden's place. For tests of the API that need no real sandbox."""

import os
import pathlib
import re
import shutil
import tempfile

from cella_server import Server, bin_dir

HERE = pathlib.Path(__file__).resolve().parent
NOBODY = 65534


def _error_codes():
    """"NAME=number,…", from the one table."""
    header = (HERE.parents[1] / "src/base/error.h").read_text()
    return ",".join(f"{name}={number}" for name, number in re.findall(r"^    X\((\w+), (\d+),", header, re.M))


class FakeServer(Server):
    """As Server. Started as root it runs as nobody; started by anybody else, as that one."""

    shares_images = False

    def __init__(self, *args, **kwargs):
        self.programs = pathlib.Path(tempfile.mkdtemp(prefix="cella-fake-", dir="/tmp"))
        self.programs.chmod(0o755)
        for name in ("cella", "cella-agent"):
            shutil.copy(bin_dir() / name, self.programs / name)
        for path in (HERE / "fake_warden.py", HERE.parent / "wirelib.py"):
            shutil.copy(path, self.programs / path.name)
            (self.programs / path.name).chmod(0o755)
        env = {"CELLA_TEST_WARDEN": str(self.programs / "fake_warden.py"), "CELLA_TEST_CODES": _error_codes(),
               "PYTHONDONTWRITEBYTECODE": "1"}
        prefix = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"] if os.geteuid() == 0 else []
        try:
            super().__init__("--network", "off", *args, env=env, programs=self.programs, prefix=prefix, **kwargs)
        except BaseException:
            shutil.rmtree(self.programs, ignore_errors=True)
            raise

    def start(self):
        if os.geteuid() == 0:
            os.chown(self.data, NOBODY, NOBODY)
            self.data.chmod(0o755)
        return super().start()

    def destroy(self):
        super().destroy()
        shutil.rmtree(self.programs, ignore_errors=True)
