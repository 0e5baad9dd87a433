"""Finished units are not measured again, whatever happened to the run."""

from __future__ import annotations

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
