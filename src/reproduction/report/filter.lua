-- Quarto's markdown for pandoc: figures, tables, equations and sections are numbered here, and a
-- reference becomes a link with that number, the same for every format.

local TYPST = FORMAT == "typst"
local NAMES = { fig = "Figure", tbl = "Table", sec = "Section", eq = "Equation" }
local NBSP = "\u{a0}"
local numbers = {} -- identifier -> its number, as text
local counts = { fig = 0, tbl = 0, eq = 0 }
local sections = {}

local function fail(message)
  error("filter.lua: " .. message, 0)
end

local function kind_of(identifier)
  local kind = identifier:match("^(%l+)%-.")
  return NAMES[kind] and kind or nil
end

local function count(kind, identifier)
  if numbers[identifier] then
    fail("identifier " .. identifier .. " is used twice: rename one")
  end
  counts[kind] = counts[kind] + 1
  numbers[identifier] = tostring(counts[kind])
  return numbers[identifier]
end

local function caption(kind, identifier, words)
  if not words or #words == 0 then
    fail(identifier .. " has no caption: write one")
  end
  local name = NAMES[kind] .. NBSP .. count(kind, identifier)
  local numbered = pandoc.Inlines({ pandoc.Str(name .. ":"), pandoc.Space() })
  numbered:extend(words)
  return pandoc.Plain(numbered), name
end

local function header(element)
  if element.classes:includes("unnumbered") then
    return
  end
  local level = element.level
  for depth = 1, level do
    sections[depth] = sections[depth] or 0
  end
  sections[level] = sections[level] + 1
  for depth = level + 1, #sections do
    sections[depth] = nil
  end
  numbers[element.identifier] = table.concat(sections, ".", 1, level)
end

local function figure(element)
  if kind_of(element.identifier) == "fig" then
    local words = pandoc.utils.blocks_to_inlines(element.caption.long)
    element.caption = { long = { (caption("fig", element.identifier, words)) } }
    return element
  end
end

-- An interval, "(39.9 to 56.9)", stays on one line of its cell.
local function intervals(inlines)
  for place = 3, #inlines - 2 do
    local low, word, high = inlines[place - 2], inlines[place], inlines[place + 2]
    local words = low.t == "Str" and word.t == "Str" and high.t == "Str"
    if words and word.text == "to" and low.text:match("^%(") and high.text:match("%)$") then
      inlines[place - 1] = pandoc.Str(NBSP)
      inlines[place + 1] = pandoc.Str(NBSP)
    end
  end
  return inlines
end

-- A div of a table and, as its last paragraph, a caption.
local function float(element)
  if kind_of(element.identifier) ~= "tbl" then
    return
  end
  local body, words
  for _, block in ipairs(element.content) do
    if block.t == "Table" then
      body = block
    elseif block.t == "Para" then
      words = block.content
    end
  end
  local numbered, name = caption("tbl", element.identifier, words)
  if not body then
    fail(element.identifier .. " contains no table: include one")
  end
  body = body:walk({ Inlines = intervals })
  if TYPST then
    body.caption = { long = { numbered } }
    body.identifier = element.identifier
    return body
  end
  local top = '<figure class="quarto-float-tbl"><figcaption class="quarto-float-caption-top">'
  local scroll = '<div role="region" tabindex="0" aria-label="' .. name .. '">'
  return pandoc.Div({
    pandoc.RawBlock("html", top),
    numbered,
    pandoc.RawBlock("html", "</figcaption>" .. scroll),
    body,
    pandoc.RawBlock("html", "</div></figure>"),
  }, pandoc.Attr(element.identifier))
end

-- A paragraph of a display formula and {#eq-...}.
local function equation(element)
  local formula, mark = element.content[1], element.content[#element.content]
  local id = formula.mathtype == "DisplayMath" and mark.t == "Str" and mark.text:match("^{#(eq%-[%w%-]+)}$")
  if id and TYPST then
    count("eq", id)
    local open, close = '#math.equation(block: true, numbering: "(1)", [', "])<" .. id .. ">"
    return pandoc.Para({ pandoc.RawInline("typst", open), formula, pandoc.RawInline("typst", close) })
  elseif id then
    formula.text = formula.text .. " \\qquad(" .. count("eq", id) .. ")"
    return pandoc.Div({ pandoc.Para({ formula }) }, pandoc.Attr(id, { "equation" }))
  end
end

local function reference(element)
  local links = pandoc.Inlines({})
  for index, citation in ipairs(element.citations) do
    local id = citation.id
    if not kind_of(id) then
      return
    elseif not numbers[id] then
      fail("cross-reference @" .. id .. " points nowhere: define {#" .. id .. "} or correct it")
    end
    local name = citation.mode == "SuppressAuthor" and "" or NAMES[kind_of(id)] .. NBSP
    links:extend(index > 1 and { pandoc.Str(","), pandoc.Space() } or {})
    links:insert(pandoc.Link({ pandoc.Str(name .. numbers[id]) }, "#" .. id, "", pandoc.Attr("", { "quarto-xref" })))
  end
  return links
end

local function image(element)
  element.attributes.alt, element.attributes["fig-alt"] = element.attributes["fig-alt"], nil
  if not element.attributes.alt then
    fail("figure " .. element.src .. " has no alt text: add fig-alt")
  end
  return element
end

-- A page never begins a line with the mark that follows a formula.
local function marks(inlines)
  if TYPST then
    return
  end
  for place = #inlines - 1, 1, -1 do
    local formula, mark = inlines[place], inlines[place + 1]
    local inline = formula.t == "Math" and formula.mathtype == "InlineMath"
    if inline and mark.t == "Str" and mark.text:match("^[,.;:)]") then
      inlines[place] = pandoc.Span({ formula, mark }, pandoc.Attr("", { "unbroken" }))
      inlines:remove(place + 1)
    end
  end
  return inlines
end

-- A PDF is also kept without the notebooks of its run: it names them instead.
local function notebook(element)
  local number = element.target:match("^%.%./notebooks/(%d+)_")
  if TYPST and number then
    return pandoc.Str("notebook" .. NBSP .. number)
  end
end

function Pandoc(document)
  document = document:walk({ traverse = "topdown", Header = header, Figure = figure, Div = float, Para = equation })
  document = document:walk({ Cite = reference, Image = image, Link = notebook, Inlines = marks })
  if TYPST then -- the numbers stand in the captions
    document.blocks:insert(1, pandoc.RawBlock("typst", "#set figure(numbering: none, supplement: none)"))
  end
  return document
end
