"""What is installed, and how much room it takes: python -m kvproof_transformers.installed"""

from importlib.metadata import distribution


def main() -> None:
    print(", ".join(map(_line, ("torch", "transformers"))))


def _line(name: str) -> str:
    package = distribution(name)
    megabytes = sum(file.size or 0 for file in package.files or []) / 1e6
    return f"{name} {package.version} ({megabytes:.0f} MB)"


if __name__ == "__main__":
    main()
