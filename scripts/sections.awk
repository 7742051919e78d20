# Cut a profile into the sections that the stages of the Makefile depend on, one file each, so that
# editing the parameters of one notebook trains nothing. A file is rewritten only if its text changes.
# The section of a notebook has its own parameters, too: editing its prose scores nothing.
#
#   awk -v out=DIRECTORY -v notebooks="NAME ..." -f scripts/sections.awk [BASE.yaml] PROFILE.yaml NOTEBOOK.ipynb ...
FNR == 1 { file++; stem = FILENAME; gsub(/.*\/|\.ipynb$/, "", stem); tagged = cell = 0 }
FILENAME ~ /\.ipynb$/ {
    if ($0 ~ /^ *"parameters",?$/) tagged = 1
    else if (tagged && $1 == "\"source\":") cell = 1
    else if (cell && $1 == "]") tagged = cell = 0
    else if (cell) text[stem, "own"] = text[stem, "own"] $0 "\n"
    next
}
/^[ \t]*(#|$)/ { next }
{ sub(/[ \t]+(#.*)?$/, "") }
/^[A-Za-z_]+:/ { key = $1; sub(/:.*/, "", key); part = key }
key == "notebooks" && /^  [A-Za-z0-9_]+:/ { part = $1; sub(/:.*/, "", part) }
from[key] != file { from[key] = file; for (old in under) if (under[old] == key) { delete text[old]; delete under[old] } }
{ text[part] = text[part] $0 "\n"; under[part] = key }

function section(name, parts,    each, n, i, now, before, line, path) {
    n = split(parts, each, " ")
    for (i = 1; i <= n; i++) now = now text[each[i]]
    path = out "/" name ".txt"
    while ((getline line < path) > 0) before = before line "\n"
    close(path)
    if (now == before && before != "") return
    printf "%s", now > path
    close(path)
}

END {
    system("mkdir -p '" out "'")
    section("corpus", "seed corpus canaries")
    section("training", "seed canaries model training")
    section("sizes", "seed sizes training")
    section("scoring", "seed canaries scoring")
    count = split(notebooks, names, " ")
    for (i = 1; i <= count; i++) section(names[i], "seed " names[i] " " names[i] SUBSEP "own")
}
