// Fisher's method, and which subsets it combines. A reader may tick others than the rules keep.

/** log10 of p: -2 sum log p_i against chi-squared with 2n degrees of freedom, a finite sum. */
function fisherLog10P(log10PValues) {
  if (!log10PValues.length) return NaN;
  const half = -Math.LN10 * log10PValues.reduce((sum, value) => sum + value, 0);
  const terms = [0]; // log of half^k / k!
  for (let k = 1; k < log10PValues.length; k += 1) {
    terms.push(terms[k - 1] + Math.log(half) - Math.log(k));
  }
  const largest = Math.max(...terms);
  const sum = terms.reduce((total, term) => total + Math.exp(term - largest), 0);
  return (largest + Math.log(sum) - half) / Math.LN10;
}

/** The subsets that are combined: those of each curve's rule, but for those that were ticked. */
class Choice {
  constructor(curves) {
    this.curves = curves;
    this.ticked = new Map();
  }

  includes(curve, name) {
    return this.ticked.get(name) ?? curve.kept.includes(name);
  }

  /** Names of the subsets that a curve combines. */
  names(curve) {
    return Object.keys(curve.log10_p).filter((name) => this.includes(curve, name));
  }

  log10P(curve) {
    return fisherLog10P(this.names(curve).map((name) => curve.log10_p[name]));
  }

  /** Fisher's p of a curve with one subset and without it; the others are as they are ticked. */
  leaveOut(curve, left) {
    const others = this.names(curve).filter((name) => name !== left);
    const values = others.map((name) => curve.log10_p[name]);
    return {
      others: others.length,
      with: fisherLog10P([...values, curve.log10_p[left]]),
      without: fisherLog10P(values),
    };
  }

  /** Shows on a box whether all curves combine a subset, none, or only some. */
  show(box, name) {
    const among = this.curves.filter((curve) => name in curve.log10_p);
    const including = among.filter((curve) => this.includes(curve, name));
    box.checked = including.length === among.length;
    box.indeterminate = including.length > 0 && !box.checked;
  }
}
