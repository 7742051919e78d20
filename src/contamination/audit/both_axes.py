"""One p-value of the order of records and the order of options, with the proof that it is exact."""

from contamination.statistics import CombinedResult, TestResult, fisher


def joint(*results: TestResult) -> CombinedResult:
    """Combine the p-values of the order of records and of the order of options, by Fisher's rule.

    Exact under H0 of both. Let A be the arrangement of every record. The p-value of options is a
    function of A alone: it sums over records, and what is drawn for a record depends on its
    content. Given A, whatever it is, the records are exchangeable within shards, so the p-value
    p of their order satisfies P(p <= a | A) <= a for every a. Hence P(p <= a and q <= b) <= a b
    with the p-value q of options, and the pair is at least as large as two independent uniforms.
    """
    return fisher(log10_p=[result.log10_p for result in results])
