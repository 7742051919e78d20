"""Questions of a public set as printed, and others of it about somebody else.

Texts that were written after a model differ from a public set by more than by what the
model has read. A question and its twin differ by one word: the given name of its only
person gives way to that of another question, whose person is called "he" or "she" as
well. Authors hardly choose a name by what is asked, so to a model that has read no
question, printed and renamed ones look alike; one that knows a question by heart
expects the name that was printed.
"""

import re
from collections.abc import Sequence

import numpy as np

CAPITAL = re.compile(r"\b[A-Z][a-z]+\b")
# A subject: at the start of a sentence, with no pronoun or article after it.
SUBJECT = re.compile(
    r"(?:^|[.?!]\s+)([A-Z][a-z]+)(?:['’]s)? (?!(?:he|she|the|a|an)\b)[a-z]",
)
PRONOUNS = {"he": r"\b(?:he|him|his)\b", "she": r"\b(?:she|her|hers)\b"}
DAYS = {f"{day}day" for day in ("Mon", "Tues", "Wednes", "Thurs", "Fri", "Satur", "Sun")}


def renamed_twins(
    questions: Sequence[str],
    *,
    rng: np.random.Generator,
) -> list[tuple[str, str]]:
    """Return each question about one person with a twin about another one, in their order.

    A name is a word that begins a sentence as its subject and nowhere in the set stands
    in lower case. Left out are questions with several names, or none, and those that
    call their person "he" as well as "she", or neither; and persons whom some question
    calls "he" and another one "she". The other name is drawn uniformly from the
    questions of the same pronoun with another name.
    """
    names = _names_in(questions)
    about = []  # name, pronoun, question
    for text in questions:
        own_names = {*CAPITAL.findall(text)} & names
        pronouns = []
        for pronoun, form in PRONOUNS.items():
            if re.search(form, text, re.IGNORECASE):
                pronouns.append(pronoun)
        if len(own_names) == 1 and len(pronouns) == 1:
            about.append((own_names.pop(), pronouns[0], text))
    persons = {(name, pronoun) for name, pronoun, _ in about}
    twins = []
    for name, pronoun, text in about:
        others = [other for other, its, _ in about if its == pronoun and other != name]
        own_pronouns = {its for person, its in persons if person == name}
        if others and own_pronouns == {pronoun}:
            other = others[rng.integers(len(others))]
            twins.append((text, re.sub(rf"\b{name}\b", other, text)))
    return twins


def _names_in(questions: Sequence[str]) -> set[str]:
    """Return the subjects of sentences that no question writes in lower case."""
    lower_case: set[str] = set()
    subjects: set[str] = set()
    for text in questions:
        lower_case.update(re.findall(r"\b[a-z]+\b", text))
        subjects.update(SUBJECT.findall(text))
    return {name for name in subjects - DAYS if name.lower() not in lower_case}
