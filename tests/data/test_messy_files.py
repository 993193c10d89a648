"""Files as people have them: each is made here, and read as the table that it holds or refused with what to do.

The table on docs/messy_files.md is what is observed here; `python tests/data/test_messy_files.py` writes it anew.
"""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import os
import re
import sys
import tempfile
import zipfile
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import polars as pl
import pytest

from setpoint.data.frame import read_table
from setpoint.data.reading import learn_readings
from setpoint.data.scan import learn_readings_of, scan_table
from setpoint.data.text_format import TextFormat
from setpoint.errors import SetpointError

PAGE = Path(__file__).parents[2] / "docs" / "messy_files.md"
BEGIN, END = "<!-- made by tests/data/test_messy_files.py -->", "<!-- end -->"

#: The table that most files hold, as text and with types.
TABLE = pl.DataFrame({"name": ["Ann", "Zoë", "O'Hara, P."], "x": ["1.5", "20", "-3"], "y": ["0", "1", "0"]})
TYPED = TABLE.with_columns(pl.col("x").cast(pl.Float64), pl.col("y").cast(pl.Int64))
TEXT = 'name,x,y\nAnn,1.5,0\nZoë,20,1\n"O\'Hara, P.",-3,0\n'
WESTERN = pl.DataFrame({"name": ["Ann", "Zoë"], "x": ["1.5", "20"], "y": ["0", "1"]})
PLAIN = "name,x,y\nAnn,1.5,0\nZoë,20,1\n"


@dataclass
class Case:
    """A file: what makes it, how it is asked for, and the table that it holds, or None if it is refused."""

    name: str
    make: Callable[[], str | list[str]]
    table: pl.DataFrame | None
    options: dict = field(default_factory=dict)
    #: Whether it is read in chunks too.
    streamed: bool = True
    #: The first column as read, of files whose values are written in an odd way.
    values: list | None = None


CASES: list[Case] = []


def case(name, path, content, table, *, streamed=True, **options):
    """A case of one file: its content is text, bytes, or a function that writes the file at the path."""

    def make():
        if callable(content):
            content(path)
        else:
            Path(path).write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    CASES.append(Case(name, make, table, options, streamed))


def several(name, make, table, **options):
    CASES.append(Case(name, make, table, options))


def valued(name, texts, values, separator=","):
    """A case of a file whose first column holds these texts, which are read as these values."""
    table = pl.DataFrame({"a": texts, "y": ["0", "1"] * (len(texts) // 2)})
    text = table.write_csv(separator=separator)
    CASES.append(Case(name, lambda: Path("t.csv").write_text(text, encoding="utf-8") and "t.csv", table, values=values))


def zipped(inside):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, text in inside.items():
            archive.writestr(name, text)
    return content.getvalue()


def zstd(text):
    """Polars is the only packer of zstd that is always there."""

    def write(path):
        names, *rows = text.splitlines()
        frame = pl.DataFrame({names: rows})
        frame.lazy().sink_csv(path, compression="zstd", quote_style="never", check_extension=False)

    return write


def lines(frame):
    return "".join(json.dumps(row) + "\n" for row in frame.to_dicts())


# Separators
case("commas", "t.csv", TEXT, TABLE)
case("semicolons", "t.csv", PLAIN.replace(",", ";"), WESTERN)
case("tabs, named .tsv", "t.tsv", PLAIN.replace(",", "\t"), WESTERN)
case("tabs, named .csv", "t.csv", PLAIN.replace(",", "\t"), WESTERN)
case("commas, named .tsv", "t.tsv", PLAIN, WESTERN)
case("bars, named .txt", "t.txt", PLAIN.replace(",", "|"), WESTERN)
case(
    "semicolons, with a comma in a name",
    "t.csv",
    "a,b;y\n1;0\n2;1\n",
    pl.DataFrame({"a,b": ["1", "2"], "y": ["0", "1"]}),
)
case(
    "semicolons, with decimal commas and a comma in a name",
    "t.csv",
    "a,b;y\n1,5;0\n2,5;1\n",
    pl.DataFrame({"a,b": ["1,5", "2,5"], "y": ["0", "1"]}),
)
case(
    "commas, with semicolons in the values",
    "t.csv",
    "a,y\nred; blue,0\ngreen; red,1\n",
    pl.DataFrame({"a": ["red; blue", "green; red"], "y": ["0", "1"]}),
)
case("the first line of Excel, `sep=;`", "t.csv", "sep=;\r\nname;x;y\r\nAnn;1.5;0\r\nZoë;20;1\r\n", WESTERN)
case("carets, which must be named", "t.csv", PLAIN.replace(",", "^"), None)
case("carets, with `--separator '^'`", "t.csv", PLAIN.replace(",", "^"), WESTERN, separator="^")
case("blanks, which must be named", "t.txt", PLAIN.replace(",", " "), None)
case("blanks, with `--separator space`", "t.txt", PLAIN.replace(",", " "), WESTERN, separator="space")
case("one column", "t.csv", "x\n1\n2\n", pl.DataFrame({"x": ["1", "2"]}))
case(
    "a comma at the end of each line",
    "t.csv",
    "x,y,\n1,0,\n2,1,\n",
    pl.DataFrame({"x": ["1", "2"], "y": ["0", "1"], "": [None, None]}, schema_overrides={"": pl.String}),
)
case(
    "a comma at the end of each row, not of the names",
    "t.csv",
    "x,y\n1,0,\n2,1,\n",
    pl.DataFrame({"x": ["1", "2"], "y": ["0", "1"], "": [None, None]}, schema_overrides={"": pl.String}),
)
case("blanks after commas", "t.csv", "x, y\n1, 0\n2, 1\n", pl.DataFrame({"x": ["1", "2"], "y": [" 0", " 1"]}))
case(
    "blanks before quotes", "t.csv", 'a, y\n"b, c", "0"\nd, "1"\n', pl.DataFrame({"a": ["b, c", "d"], "y": ["0", "1"]})
)

# Encodings
case("a byte order mark", "t.csv", TEXT.encode("utf-8-sig"), TABLE)
case("Latin-1", "t.csv", PLAIN.encode("latin-1"), WESTERN)
case(
    "Windows-1252, with a euro sign",
    "t.csv",
    "a,y\n€ 5,0\n“b”,1\n".encode("cp1252"),
    pl.DataFrame({"a": ["€ 5", "“b”"], "y": ["0", "1"]}),
)
case(
    "Windows-1250, with `--encoding cp1250`",
    "t.csv",
    "a,y\nŁódź,0\nb,1\n".encode("cp1250"),
    pl.DataFrame({"a": ["Łódź", "b"], "y": ["0", "1"]}),
    encoding="cp1250",
)
case(
    "Latin-1, with a byte that Windows-1252 does not know",
    "t.csv",
    b"a,y\ncaf\xe9\x81,0\nb,1\n",
    pl.DataFrame({"a": ["caf\xe9\x81", "b"], "y": ["0", "1"]}),
)
case("UTF-16 with its mark", "t.csv", TEXT.encode("utf-16"), TABLE)
case("UTF-16 without a mark", "t.csv", TEXT.encode("utf-16-be"), TABLE)
case(
    "UTF-16, tabs: what Excel calls Unicode text",
    "t.txt",
    PLAIN.replace(",", "\t").replace("\n", "\r\n").encode("utf-16"),
    WESTERN,
)
case("UTF-8 that is said to be UTF-16", "t.csv", "x,y\n1,0\n22,1\n", None, encoding="utf-16")
case("Latin-1 that is said to be UTF-8", "t.csv", PLAIN.encode("latin-1"), None, encoding="utf-8")
case("a zero byte", "t.csv", "x,y\n1,0\n2\0,1\n", None)

# Lines
case("line ends of Windows", "t.csv", TEXT.replace("\n", "\r\n"), TABLE)
case("line ends of both kinds", "t.csv", PLAIN.replace("\n", "\r\n", 2), WESTERN)
case("line ends of old Macs", "t.csv", PLAIN.replace("\n", "\r"), None)
case("no line end at the end", "t.csv", TEXT.rstrip(), TABLE)
case("blank lines between rows", "t.csv", PLAIN.replace("\n", "\n\n"), WESTERN)
case("blank lines above the names", "t.csv", "\n \n" + PLAIN, WESTERN)
case(
    "line ends and quotes within quotes",
    "t.csv",
    'a,y\n"one\n""two""",0\n"three",1\n',
    pl.DataFrame({"a": ['one\n"two"', "three"], "y": ["0", "1"]}),
)
case("comments above the names", "t.csv", "# made by hand\n# in May\n" + PLAIN, WESTERN)
case("a comment with as many commas as the names", "t.csv", "# by hand, in May, at home\n" + PLAIN, WESTERN)
case("a row with a value too many, below comments", "t.csv", "# by hand\nx,y\n1,0\n1,2,3\n", None)
case("a row with a value too few, with `--no-header`", "t.csv", "0,1\n1\n0,1\n", None, header=False)
case("names that start with #", "t.csv", "#x,y\n1,0\n2,1\n", pl.DataFrame({"#x": ["1", "2"], "y": ["0", "1"]}))
case("a title above the names", "t.csv", "Sales in May\n" + PLAIN, None)
case("a row with a value too many", "t.csv", "x,y\n1,0\n1,2,3\n", None)
case("a row with a value too few", "t.csv", "y,x\n1,0\n1\n0,1\n", None)
case("a quote that never closes", "t.csv", 'x,y\n1,0\n1,"0\n2,1\n', None)
case("two columns of one name", "t.csv", "x,x,y\n1,2,0\n", None)
case("names alone", "t.csv", "x,y\n", None)
case(
    "no names, with `--no-header`",
    "t.csv",
    "5.1,3.5,0\n4.9,3.0,1\n",
    pl.DataFrame({"column_1": ["5.1", "4.9"], "column_2": ["3.5", "3.0"], "column_3": ["0", "1"]}),
    header=False,
)
case("no names", "t.csv", "5.1,3.5,0\n4.9,3.0,1\n", pl.DataFrame({"5.1": ["4.9"], "3.5": ["3.0"], "0": ["1"]}))
case("a first line of 200,000 characters", "t.csv", "a" * 200_000 + ",y\n1,0\n", None)
case("nothing", "t.csv", "", None)
case("blank lines alone", "t.csv", "\n\n", None)

# Values, which are read column by column
valued("decimal commas and semicolons", ["1,5", "-3"], [1.5, -3.0], ";")
valued("decimal commas, points between thousands", ["1.234,56", "12,5"], [1234.56, 12.5], ";")
valued("commas between thousands, in quotes", ["1,234", "12,345.5"], [1234.0, 12345.5])
valued("percent signs", ["5 %", "7.5%"], [5.0, 7.5])
valued("percent signs on whole numbers", ["5%", "7%"], [5.0, 7.0])
valued("euros", ["1.200 €", "12,50 €"], [1200.0, 12.5], ";")
valued("dollars, and brackets for a minus", ["$1,200", "($5.50)"], [1200.0, -5.5])
valued("dates", ["2024-03-01", "2024-12-31"], [datetime(2024, 3, 1), datetime(2024, 12, 31)])
valued("dates of Europe", ["31.12.2024", "01.02.2024"], [datetime(2024, 12, 31), datetime(2024, 2, 1)])
valued("dates of America", ["12/31/2024", "01/02/2024"], [datetime(2024, 12, 31), datetime(2024, 1, 2)])
valued("dates with the year first", ["2024/12/31", "2024/2/1"], [datetime(2024, 12, 31), datetime(2024, 2, 1)])
valued("dates with dashes, day first", ["31-12-2024", "01-02-2024"], [datetime(2024, 12, 31), datetime(2024, 2, 1)])
valued("names of months", ["31-Dec-2024", "01-Feb-2024"], [datetime(2024, 12, 31), datetime(2024, 2, 1)])
valued(
    "names of months before the day", ["Dec 31, 2024", "Feb 1, 2024"], [datetime(2024, 12, 31), datetime(2024, 2, 1)]
)
valued(
    "clocks with am and pm", ["12/31/2024 5:45 PM", "2/1/2024 12:05 AM"],
    [datetime(2024, 12, 31, 17, 45), datetime(2024, 2, 1, 0, 5)],
)  # fmt: skip
valued("codes with leading zeros", ["007", "0123"], ["007", "0123"])

# Compressed files
case("`.csv.gz`", "t.csv.gz", gzip.compress(TEXT.encode()), TABLE)
case("`.csv.zst`", "t.csv.zst", zstd(TEXT), TABLE, streamed=False)
case("`.csv.bz2`", "t.csv.bz2", bz2.compress(TEXT.encode()), TABLE)
case("`.tsv.xz`", "t.tsv.xz", lzma.compress(PLAIN.replace(",", "\t").encode()), WESTERN)
case("`.zip` of one file", "t.csv.zip", zipped({"t.csv": TEXT}), TABLE)
case("`.zip` of two files", "t.csv.zip", zipped({"a.csv": TEXT, "b.csv": TEXT}), None)
case("`.jsonl.gz`", "t.jsonl.gz", gzip.compress(lines(TYPED).encode()), TYPED)
case(
    "Latin-1 with semicolons, `.csv.gz`", "t.csv.gz", gzip.compress(PLAIN.replace(",", ";").encode("latin-1")), WESTERN
)
case("gzip, named .csv", "t.csv", gzip.compress(TEXT.encode()), TABLE)
case("an empty `.csv.gz`", "t.csv.gz", gzip.compress(b""), None)
case("half a `.csv.gz`", "t.csv.gz", gzip.compress(TEXT.encode() * 99)[:-20], None)
case("text, named .csv.gz", "t.csv.gz", TEXT, TABLE)

# Other kinds of files
case("Parquet", "t.parquet", TYPED.write_parquet, TYPED)
case("Parquet, named .csv", "t.csv", TYPED.write_parquet, TYPED)
case("half a Parquet file", "t.parquet", lambda path: Path(path).write_bytes(b"PAR1 and so on"), None)
case("text, named .parquet", "t.parquet", TEXT, None)
case("Arrow", "t.arrow", TYPED.write_ipc, TYPED)
case("Feather, compressed within", "t.feather", lambda path: TYPED.write_ipc(path, compression="zstd"), TYPED)
case("an Arrow stream", "t.arrow", TYPED.write_ipc_stream, TYPED, streamed=False)
case("JSON lines", "t.jsonl", lines(TYPED), TYPED)
case("JSON lines, named .csv", "t.csv", lines(TYPED), TYPED)
case(
    "JSON lines that lack a value",
    "t.ndjson",
    '{"x": 1, "y": 0}\n{"y": 1}\n',
    pl.DataFrame({"x": [1, None], "y": [0, 1]}),
)
case("a JSON list", "t.json", json.dumps(TYPED.to_dicts()), None)
case("a JSON list, named .csv", "t.csv", json.dumps(TYPED.to_dicts(), indent=1), None)
case("an Excel workbook", "t.xlsx", zipped({"[Content_Types].xml": "", "xl/workbook.xml": ""}), None)
case("an Excel workbook, named .csv", "t.csv", zipped({"[Content_Types].xml": "", "xl/workbook.xml": ""}), None)
case("an old Excel workbook, named .csv", "t.csv", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(500), None)
case("a web page, named .csv", "t.csv", "<!DOCTYPE html>\n<html><table><tr><td>1</td></tr></table></html>\n", None)
case("a picture, named .csv", "t.csv", b"\x89PNG\r\n\x1a\n" + bytes(range(1, 200)), None)


def folder(*files, more=()):
    def make():
        os.mkdir("data")
        for name, write in (*files, *more):
            place = Path("data", name)
            place.parent.mkdir(exist_ok=True)
            write(place)
        return "data"

    return make


def write(text):
    return lambda place: place.write_text(text, encoding="utf-8")


def two_files():
    for name, half in (("a.csv", TABLE[:1]), ("b.csv", TABLE[1:].select("y", "name", "x"))):
        half.write_csv(name)
    return ["a.csv", "b.csv"]


several("two files, the columns in another order", two_files, TABLE)
several("one file twice, by its name and by a pattern", lambda: [*two_files()[:1], "[ab].csv"], None)
several("a pattern in quotes", lambda: [*two_files()[:0], "[ab].csv"], TABLE)
several("a pattern that no file fits", lambda: ["*.csv"], None)
several(
    "a folder of Parquet files",
    folder(
        ("1.parquet", TYPED[:2].write_parquet), ("2.parquet", TYPED[2:].write_parquet), more=[("_SUCCESS", write(""))]
    ),
    TYPED,
)
several(
    "a folder of CSV files, with a letter among them",
    folder(("1.csv", TABLE[:2].write_csv), ("2.csv", TABLE[2:].write_csv), ("read.me", write("hi"))),
    TABLE,
)
several(
    "a folder of files with other columns", folder(("1.csv", write("x,y\n1,0\n")), ("2.csv", write("x,z\n1,0\n"))), None
)
several(
    "a folder of files, one with a column more",
    folder(("1.csv", write("x,y\n1,0\n")), ("2.csv", write("x,y,z\n1,0,2\n"))),
    None,
)
several(
    "a folder of whole numbers and fractions",
    folder(("1.parquet", TYPED[:1].cast({"x": pl.Int64}).write_parquet), ("2.parquet", TYPED[1:].write_parquet)),
    TYPED.with_columns(x=pl.Series([1.0, 20.0, -3.0])),
)
several("a folder of text and Parquet", folder(("1.csv", TABLE.write_csv), ("2.parquet", TYPED.write_parquet)), None)
several("a folder in partitions", folder(("y=0/1.parquet", TYPED.write_parquet)), None)
several("a folder without tables", folder(("letter.doc", write("dear all"))), None)


def observed(one: Case) -> tuple[pl.DataFrame | None, str]:
    """The table that is read, or None, and the notes or the refusal."""
    notes: list[str] = []
    try:
        table = read_table(one.make(), TextFormat(**one.options), notes)
        if one.values is not None:
            notes += filter(None, [learn_readings(table)[0]["a"].spelling("a")])
        return table, "; ".join(notes)
    except SetpointError as refusal:
        return None, str(refusal)


@contextmanager
def in_an_empty_place():
    back = os.getcwd()
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        try:
            yield
        finally:
            os.chdir(back)


def row(one: Case) -> str:
    with in_an_empty_place():
        table, said = observed(one)
    cells = [one.name, "refused" if table is None else "read", f"`{said}`" if said else ""]
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def page() -> str:
    head = ["| file | | what setpoint says |", "|---|---|---|"]
    return "\n".join([BEGIN, "", *head, *map(row, CASES), "", END])


def test_there_are_forty_of_them_and_no_two_alike():
    names = [one.name for one in CASES]
    assert len(set(names)) == len(names) >= 40


@pytest.mark.parametrize("one", CASES, ids=lambda one: one.name)
def test_a_messy_file_is_read_right_or_refused_with_what_to_do(one):
    with in_an_empty_place():
        table, said = observed(one)
        assert (table is None) == (one.table is None), said
        assert "\n" not in said
        if table is None:
            assert re.search(r"[;:] |is empty|no rows", said), "a refusal says what to do"
            return
        assert table.equals(one.table), table
        assert table.schema == one.table.schema
        assert one.values is None or learn_readings(table)[1]["a"].to_list() == one.values


@pytest.mark.parametrize("one", CASES, ids=lambda one: one.name)
def test_in_chunks_it_is_the_same(one):
    with in_an_empty_place():
        paths, notes = one.make(), []
        if one.table is None or not one.streamed:
            with pytest.raises(SetpointError):
                scan_table(paths, 10, layout=TextFormat(**one.options))
            return
        scan = scan_table(paths, 10, layout=TextFormat(**one.options), notes=notes)
        assert pl.concat(list(scan)).equals(one.table)
        if one.values is not None:
            reading = learn_readings_of(scan)["a"]
            assert reading.read(one.table["a"]).to_list() == one.values
            notes += filter(None, [reading.spelling("a")])
        assert (scan.rows, scan.columns) == (one.table.height, one.table.columns)
    with in_an_empty_place():
        assert "; ".join(notes) == observed(one)[1]


def test_the_page_is_what_is_observed():
    found = re.search(re.escape(BEGIN) + ".*" + re.escape(END), PAGE.read_text(encoding="utf-8"), re.S)
    assert found is not None
    assert found[0].splitlines() == page().splitlines()


@pytest.mark.parametrize("ending", ["csv", "parquet", "arrow", "jsonl"])
def test_a_name_is_no_pattern(tmp_path, ending):
    path = tmp_path / f"t[1]*.{ending}"
    write = {
        "csv": TYPED.write_csv,
        "parquet": TYPED.write_parquet,
        "arrow": TYPED.write_ipc,
        "jsonl": TYPED.write_ndjson,
    }
    write[ending](path)
    TYPED[:1].write_csv(tmp_path / "t12.csv")
    assert read_table(path).shape == TYPED.shape
    assert scan_table(path).rows == TYPED.height


def test_nothing_is_left_in_the_temporary_directory(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    Path("t.csv.gz").write_bytes(gzip.compress(PLAIN.encode("utf-16")))
    assert read_table("t.csv.gz").equals(WESTERN)
    scan = scan_table("t.csv.gz")
    assert pl.concat(list(scan)).equals(WESTERN)
    assert len(os.listdir()) == 2
    del scan
    assert os.listdir() == ["t.csv.gz"]


if __name__ == "__main__":
    before = PAGE.read_text(encoding="utf-8")
    after = re.sub(re.escape(BEGIN) + ".*" + re.escape(END), lambda _: page(), before, flags=re.S)
    PAGE.write_text(after, encoding="utf-8")
    sys.stdout.write(f"{PAGE.name}: {len(CASES)} files\n")
