"""An audit in words: the lines that people read, made from plain findings."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from contamination import statistics
from contamination.audit.decision import Verdict, log10_floor
from contamination.audit.evidence import ControlModel
from contamination.audit.finding import Finding
from contamination.audit.objections import ZLIB_BASELINE, at_most
from contamination.audit.other_tests import OtherTest, other_tests_in_words
from contamination.audit.registry import ITEM_TESTS

if TYPE_CHECKING:
    from contamination.audit.comparison import Comparison

MOST_LISTED = 10  # records that were read, in the text for people
# of log10 of the least p: a p-value there could not have been smaller
NEAR_FLOOR = 0.999
LARGE_ERROR = 0.05  # of log10 p over sampled orderings, from which on it is told
REVERSED = 0.99  # p of an order from which on its reverse may be the one that was read
FEW_SHARDS = 10  # of the t-test, below which its assumption matters


def summary(
    model: str,
    dataset: str,
    findings: Sequence[Finding],
    notes: Sequence[str],
    verdict: Verdict,
) -> str:
    """Return an audit as text: a line for each test, the lines of `notes_on`, and the verdict."""
    lines = []
    for finding in findings:
        result = finding.result
        lines.append(f"{model} on {dataset}: {result.test} test, p = {result.p:.3g}")
    return "\n".join([*lines, *notes, str(verdict)])


def notes_on(
    findings: Sequence[Finding],
    *,
    combined_p: float | None = None,
    combined_by: str = "Fisher",
    control: ControlModel | None = None,
    held_out: "Comparison | None" = None,
    other_tests: Sequence[OtherTest] = (),
) -> list[str]:
    """Return lines on the limits of p-values, and on their controls.

    `combined_p` is that of all tests together, and `combined_by` the rule of their
    combination. `held_out` is the comparison with records that a key has held back, and
    `other_tests` are those of the same model and set by other commands.
    """
    lines = []
    if combined_p is not None:
        lines.append(f"all together ({combined_by}): p = {combined_p:.3g}")
    if held_out is not None:
        lines.append(_scores(held_out))
        if combined_p is not None and at_most(combined_p, held_out.level):
            lines += read_records(held_out)
    for finding in findings:
        lines += _limits(finding)
    lines += _diagnoses(findings)
    lines += _zlib_baselines(findings)
    if control is not None:
        lines.append(_control(control, findings))
    if other_tests:
        lines.append(other_tests_in_words(other_tests))
    return lines


def _scores(comparison: "Comparison") -> str:
    """Return a line on how each membership score tells the two sides apart."""
    result = comparison.result
    scores = []
    for name, p in zip(result.names, result.marginal_p, strict=True):
        scores.append(f"{name} (AUC {comparison.aucs[name]:.3f}, p = {p:.3g})")
    return (
        f"held_out: {result.published:,} published records against {result.held_out:,} that the "
        f"key held back, by {', '.join(scores)}"
    )


def read_records(comparison: "Comparison") -> list[str]:
    """Return lines on how many published records were read, and on which ones.

    They stand below a verdict that says the set was read; there are none within strata.
    """
    lines = []
    published = comparison.result.published
    if comparison.read_bound:
        lines.append(
            f"at least {comparison.read_bound:,} of {published:,} published "
            f"records were read (confidence {_percent(1 - comparison.level)})"
        )
    elif comparison.read_bound == 0:
        lines.append(
            f"how many of the {published:,} published records were read is not known: the bound "
            f"finds none by itself (confidence {_percent(1 - comparison.level)})"
        )
    if comparison.read_records:
        listed = [str(number + 1) for number in comparison.read_records[:MOST_LISTED]]
        more = len(comparison.read_records) - len(listed)
        if more:
            listed.append(f"{more:,} more in the JSON")
        lines.append(
            f"read, at a false discovery rate of {_percent(comparison.level)}: records "
            f"{', '.join(listed)}"
        )
    return lines


def _percent(share: float) -> str:
    """Return a share in percent, with all its digits.

    >>> _percent(1 - 0.001), _percent(0.05)
    ('99.9%', '5%')
    """
    return f"{100 * share:.12g}%"


def _limits(finding: Finding) -> list[str]:
    """Return lines on how one result is to be read."""
    result = finding.result
    name = result.test
    lines = []
    if hasattr(result, "stopped_at"):
        ended = "not enough evidence" if result.stopped_at is None else "stopped"
        lines.append(f"{name}: {ended} after {result.shards} shards; p is anytime-valid")
    best = getattr(result, "best", None)
    if best:
        lines.append(f"{name}: the smallest p was that of {best}")
    if isinstance(result, statistics.KnownResult):
        lines.append(
            f"{name}: {result.known_at_least} or more of {result.shards} are known "
            f"(confidence {_percent(1 - result.level)})"
        )
    if name == "sharded_t" and result.shards < FEW_SHARDS:
        lines.append(
            f"{name}: of {result.shards} shards its p is exact only if their differences are "
            "normal; sharded_exact is exact"
        )
    if result.log10_p <= NEAR_FLOOR * log10_floor(result):
        lines.append(f"{name}: this is the smallest p that these shards and orderings permit")
    if result.p >= REVERSED and name not in ITEM_TESTS and not finding.answers_problem:
        lines.append(
            f"{name}: the model prefers nearly all other orders to this one, as it would if "
            "it had read the file in reverse: if your file may be reversed, or sorted newest "
            "first, test the reverse order as well, and count that as one more test"
        )
    if finding.error is not None and finding.error >= LARGE_ERROR:
        lines.append(
            f"{name}: other sampled orderings would move log10 p by about {finding.error:.1f}"
        )
    return lines


def _diagnoses(findings: Sequence[Finding]) -> list[str]:
    """Return lines on each order, which several tests may share."""
    diagnoses = {finding.diagnosis: None for finding in findings if finding.diagnosis}
    lines = []
    for diagnosis in diagnoses:
        lines.append(f"{diagnosis.what}: {diagnosis.verdict}")
        lines += [f"  {reason}" for reason in diagnosis.reasons]
        if diagnosis.remark:
            lines.append(diagnosis.remark)
    return lines


def _zlib_baselines(findings: Sequence[Finding]) -> list[str]:
    """Return a line on each zlib baseline, which several tests may share."""
    baselines = {finding.zlib: None for finding in findings if finding.zlib}
    lines = []
    for baseline in baselines:
        tested = ""
        if len(baselines) > 1:
            tests = []
            for finding in findings:
                if finding.zlib is baseline:
                    tests.append(finding.result.test)
            tested = f" ({', '.join(tests)})"
        lines.append(
            f"{ZLIB_BASELINE}, which has read nothing{tested}: p = {baseline.p:.3g}",
        )
    return lines


def _control(control: ControlModel, findings: Sequence[Finding]) -> str:
    """Return a line on the p-values of a control model."""
    tests = [finding.result.test for finding in findings]
    p_values = dict(zip(tests, control.p_values, strict=True))
    if control.combined_p is not None:
        p_values["together"] = control.combined_p
    parts = [f"{test} p = {p:.3g}" for test, p in p_values.items()]
    return f"the control, {control.name}: {', '.join(parts)}"
