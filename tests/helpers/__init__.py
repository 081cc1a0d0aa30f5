"""What tests share: builders of records, fakes, and where things lie."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TESTS = ROOT / "tests"
