"""Finished units are not measured again, whatever happened to the run."""

from __future__ import annotations

import sys
import types

import pytest

from onefit_papers import run
from onefit_papers.agreement import Compared
from onefit_papers.journal import Journal, Origin

UNITS = [{"set": name, "replicate": i} for name in "ab" for i in range(2)]
HERE = Origin("abc", "a machine", "Python 3")


def _row(unit, value=1.0):
    return {"table": "1", "variant": "main", "row": unit["set"], "column": "c"} | {
        "replicate": unit["replicate"],
        "value": value,
    }


def test_a_finished_unit_is_remembered(tmp_path):
    journal = Journal(tmp_path / "deep" / "journal.jsonl")
    journal.add(UNITS[1], [_row(UNITS[1])], HERE)
    again = Journal(tmp_path / "deep" / "journal.jsonl")
    assert again.pending(UNITS) == [UNITS[0], *UNITS[2:]]
    assert again.of(UNITS) == [_row(UNITS[1])]
    assert again.origins_of(UNITS) == [HERE]


def test_a_line_that_was_cut_off_is_forgotten(tmp_path):
    path = tmp_path / "journal.jsonl"
    journal = Journal(path)
    for unit in UNITS[:2]:
        journal.add(unit, [_row(unit)], HERE)
    path.write_text(path.read_text()[:-9])
    again = Journal(path)
    assert again.pending(UNITS) == UNITS[1:]
    again.add(UNITS[1], [_row(UNITS[1], 2.0)], HERE)
    assert Journal(path).of(UNITS[:2]) == [_row(UNITS[0]), _row(UNITS[1], 2.0)]


def test_another_setting_is_another_unit(tmp_path):
    journal = Journal(tmp_path / "journal.jsonl")
    journal.add(UNITS[0], [], HERE)
    assert journal.pending([UNITS[0] | {"seed": 1}])
    assert not journal.pending([dict(reversed(UNITS[0].items()))])


@pytest.fixture
def experiment(monkeypatch):
    """A paper that breaks down in its second set, once."""
    module = types.ModuleType("onefit_papers.pretend")
    module.NAME, module.TITLE, module.COMPARED = "ieice2019", "Pretend", Compared(())
    module.timed = lambda unit: unit["set"] == "b"
    module.measured = []
    module.broken = True

    def measure(unit, loader):
        if unit == UNITS[2] and module.broken:
            raise KeyboardInterrupt
        module.measured.append(unit)
        return [_row(unit)]

    module.measure = measure
    module.units = lambda config: UNITS
    module.cuts = lambda config: []
    module.sections = lambda results, published: [f"{len(results.all)} rows"]
    module.verdicts = lambda results, published: []
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(run, "PAPERS", ("pretend",))
    monkeypatch.setattr(run, "_config_text", lambda paper: "[quick]\n[full]\n")
    return module


def test_an_interrupted_run_goes_on(experiment, tmp_path, capsys):
    with pytest.raises(KeyboardInterrupt):
        run.reproduce("pretend", out=tmp_path)
    first, second = [UNITS[0]], [UNITS[2], UNITS[1], UNITS[3]]  # replicate by replicate
    assert experiment.measured == first
    experiment.broken = False
    (page,) = run.reproduce("pretend", out=tmp_path)
    assert experiment.measured == first + second
    assert "4 units, 1 of them finished before" in capsys.readouterr().out
    assert "4 rows" in page.read_text()
    assert len((tmp_path / "results.csv").read_text().splitlines()) == 5
    assert (tmp_path / "config.toml").exists()


def test_wrong_arguments(tmp_path):
    with pytest.raises(ValueError, match="did you mean 'icml2014'"):
        run.reproduce("icml2013")
    with pytest.raises(ValueError, match="mode='fast' is not known"):
        run.reproduce("ieice2019", "fast")
