"""No file of the library imports another one in a circle."""

import grimp
import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components


def circles_of(graph: grimp.ImportGraph) -> list[set[str]]:
    """Return the sets of modules that reach each other by imports."""
    modules = sorted(graph.modules)
    imports = np.zeros((len(modules), len(modules)), dtype=bool)
    for row, module in enumerate(modules):
        for imported in graph.find_modules_directly_imported_by(module):
            imports[row, modules.index(imported)] = True
    _, labels = connected_components(csr_matrix(imports), connection="strong")
    circles = []
    for label in np.flatnonzero(np.bincount(labels) > 1):
        circles.append({modules[row] for row in np.flatnonzero(labels == label)})
    return circles


def test_no_files_import_each_other_in_a_circle():
    graph = grimp.build_graph("contamination", cache_dir=None)
    assert circles_of(graph) == []


def test_a_circle_over_three_files_is_found():
    graph = grimp.ImportGraph()
    for importer, imported in (("a", "b"), ("b", "c"), ("c", "a"), ("d", "a")):
        graph.add_import(importer=importer, imported=imported)
    assert circles_of(graph) == [{"a", "b", "c"}]
