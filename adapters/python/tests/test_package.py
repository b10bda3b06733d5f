"""What is in the package that others install."""

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

HERE = Path(__file__).parents[1]


def test_the_wheel_has_types_and_the_plugin_and_nothing_else(tmp_path):
    shutil.copytree(HERE, tmp_path / "source", ignore=shutil.ignore_patterns("*.egg-info", "__pycache__", "build"))
    pip = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "--disable-pip-version-check",
    ]
    subprocess.run([*pip, "-w", tmp_path, tmp_path / "source"], check=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as file:
        names = {name for name in file.namelist() if ".dist-info/" not in name}
        (entries,) = [name for name in file.namelist() if name.endswith("entry_points.txt")]
        assert "kvproof = kvproof_adapter.pytest_plugin" in file.read(entries).decode()
    expected = {
        f"kvproof_adapter/{file.name}" for file in (HERE / "src" / "kvproof_adapter").iterdir() if file.is_file()
    }
    assert names == expected and "kvproof_adapter/py.typed" in names


def test_the_core_needs_no_pytest():
    code = "import sys; sys.modules['pytest'] = None; import kvproof_adapter, kvproof_adapter.judging"
    subprocess.run([sys.executable, "-c", code], check=True)
