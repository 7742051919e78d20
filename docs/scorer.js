// Sphinx's own scores, except that guides come before the pages of modules.
var Scorer = {
  score: ([docName, , , , score]) => (docName.startsWith("reference/") ? score - 100 : score),
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
