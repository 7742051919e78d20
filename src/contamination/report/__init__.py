"""The report: `paper/report.qmd` with the numbers, tables and figures of one run, as HTML and PDF.

The report runs no code. Sources and results are staged side by side, every reference is checked
with file and line, Quarto renders the document where it is installed and pandoc with typst where
it is not, and the page is checked again before it replaces the previous one.
"""

import tempfile
from pathlib import Path

from contamination.errors import InputError
from contamination.files import replacing
from contamination.report import pandoc
from contamination.report.check import check_html, check_pdf
from contamination.report.quarto import Quarto
from contamination.report.source import read_document
from contamination.report.stage import out_of_space, plain, stage_sources

__all__ = ["check_html", "check_pdf", "plain", "render_report"]

DOCUMENT = "report.qmd"


def render_report(paper: Path, results: Path, *, quarto: str | None = None) -> list[Path]:
    """Render `paper`/report.qmd with the results of one run into `results`/report/.

    Parameters
    ----------
    paper
        The directory with report.qmd, _quarto.yml, the bibliography and the styles.
    results
        The directory that a run filled: tables/, figures/ and variables.yml.
    quarto
        The Quarto executable to use; None looks for one beside the Python interpreter and on PATH;
        the empty string does without.

    Returns
    -------
    list of Path
        The HTML page (one self-contained file) and the PDF.

    Raises
    ------
    InputError
        A missing result, or an unresolved reference; what was rendered before is as it was.
    """
    tool, reason = Quarto.find(quarto)
    with tempfile.TemporaryDirectory(prefix="report-") as temporary, out_of_space(Path(temporary)):
        stage = stage_sources(Path(paper), Path(results), Path(temporary).resolve())
        document = read_document(stage, DOCUMENT)
        if tool is not None:
            print(f"report: rendering with Quarto {tool.version} ({reason})", flush=True)
            rendered = tool.render(stage, document)
        else:
            print(f"report: rendering with {pandoc.describe()} ({reason})", flush=True)
            rendered = pandoc.render(stage, document)
        for file in rendered:
            if not file.is_file():
                raise InputError(f"the renderer wrote no {file.name}: run it again with its log")
        page, printed = rendered
        check_html(page)
        check_pdf(printed)
        return [_publish(file, Path(results) / "report" / file.name) for file in rendered]


def _publish(file: Path, target: Path) -> Path:
    with replacing(target) as temporary:
        temporary.write_bytes(file.read_bytes())
    return target
