-- What Quarto makes of its own markdown, for pandoc: numbered figures, tables, equations and
-- sections, and references to them. Shortcodes were expanded before pandoc read the text.

local SLIDES = FORMAT == "revealjs"
local HTML = SLIDES or FORMAT:match("^html") ~= nil
local NAMES = { fig = "Figure", tbl = "Table", sec = "Section", eq = "Equation" }
local NBSP = "\u{a0}"

local numbers = {} -- identifier -> its number, as text
local counts = { fig = 0, tbl = 0, eq = 0 }
local sections = {}

local function fail(message)
  error("quarto.lua: " .. message, 0)
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

local function raw(text)
  return pandoc.RawBlock(HTML and "html" or "typst", text)
end

local function quoted(text) -- a typst string
  return '"' .. text:gsub('[\\"]', "\\%0") .. '"'
end

local function labelled(kind, number, caption)
  local inlines = pandoc.Inlines({ pandoc.Str(NAMES[kind] .. NBSP .. number .. ":"), pandoc.Space() })
  inlines:extend(caption)
  return inlines
end

local function header(element)
  if element.classes:includes("unnumbered") then
    if kind_of(element.identifier) == "sec" then
      fail("section " .. element.identifier .. " is unnumbered: a reference to it has no number")
    end
    return nil
  end
  local level = element.level
  for depth = 1, level do
    sections[depth] = sections[depth] or 0
  end
  sections[level] = sections[level] + 1
  for depth = level + 1, #sections do
    sections[depth] = nil
  end
  if element.identifier ~= "" then
    numbers[element.identifier] = table.concat(sections, ".", 1, level)
  end
end

local function figure(element)
  if kind_of(element.identifier) ~= "fig" then
    return nil
  end
  local number = count("fig", element.identifier)
  local image
  element:walk({
    Image = function(found)
      image = found
    end,
  })
  local alt = image and image.attributes["fig-alt"] or ""
  if alt == "" then
    fail("figure " .. element.identifier .. " has no alt text: add fig-alt")
  end
  local caption = pandoc.utils.blocks_to_inlines(element.caption.long)
  if #caption == 0 then
    fail("figure " .. element.identifier .. " has no caption: write one")
  end
  if HTML then
    image.attributes["fig-alt"] = nil
    image.caption = pandoc.Inlines({ pandoc.Str(alt) })
    element.content = { pandoc.Plain({ image }) }
    element.caption = { long = { pandoc.Plain(labelled("fig", number, caption)) } }
    element.classes:insert("quarto-float-fig")
    return element
  end
  local width = image.attributes.width or "100%"
  return {
    raw("#figure(image(" .. quoted(image.src) .. ", width: " .. width .. ", alt: " .. quoted(alt) .. "), caption: ["),
    pandoc.Plain(caption),
    raw("]) <" .. element.identifier .. ">"),
  }
end

local function float_table(element)
  local id = element.identifier
  local number = count("tbl", id)
  local body, caption
  for _, block in ipairs(element.content) do
    if block.t == "Table" then
      body = block
    elseif block.t == "Para" or block.t == "Plain" then
      caption = block.content
    end
  end
  if not body then
    fail("table " .. id .. " contains no table: include one")
  end
  if not caption then
    fail("table " .. id .. " has no caption: write it as the last paragraph of the block")
  end
  if HTML then
    local name = NAMES.tbl .. " " .. number
    return pandoc.Div({
      raw('<figure class="quarto-float quarto-float-tbl"><figcaption class="quarto-float-caption-top">'),
      pandoc.Plain(labelled("tbl", number, caption)),
      raw('</figcaption><div class="table-scroll" role="region" tabindex="0" aria-label="' .. name .. '">'),
      body,
      raw("</div></figure>"),
    }, pandoc.Attr(id, { "quarto-float" }))
  end
  body.caption = { long = { pandoc.Plain(caption) } }
  body.identifier = id
  return body
end

local function div(element)
  if kind_of(element.identifier) == "tbl" then
    return float_table(element)
  end
  if element.classes:find_if(function(class) return class:match("^callout") end) then
    fail("a callout has no look in Quarto without its theme: write ::: {#box-... .box}")
  end
end

-- A display formula followed by {#eq-...}.
local function equations(element)
  local inlines = pandoc.Inlines({})
  local content, position = element.content, 1
  while position <= #content do
    local item, after = content[position], position + 1
    if content[after] and content[after].t == "Space" then
      after = after + 1
    end
    local id = item.t == "Math" and item.mathtype == "DisplayMath" and content[after]
      and content[after].t == "Str" and content[after].text:match("^{#(eq%-[%w%-]+)}")
    if not id then
      inlines:insert(item)
      position = position + 1
    else
      local number = count("eq", id)
      if HTML then
        item.text = item.text .. " \\qquad(" .. number .. ")"
        inlines:insert(pandoc.Span({ item }, pandoc.Attr(id, { "equation" })))
      else
        inlines:insert(pandoc.RawInline("typst", '#math.equation(block: true, numbering: "(1)", [ '))
        inlines:insert(item)
        inlines:insert(pandoc.RawInline("typst", " ])<" .. id .. ">"))
      end
      local rest = content[after].text:sub(#id + 4)
      if rest ~= "" then
        inlines:insert(pandoc.Str(rest))
      end
      position = after + 1
    end
  end
  element.content = inlines
  return element
end

local function reference(element)
  local result, references = pandoc.Inlines({}), 0
  for index, citation in ipairs(element.citations) do
    local id = citation.id
    local kind = kind_of(id)
    if kind then
      references = references + 1
      if not numbers[id] then
        fail("cross-reference @" .. id .. " points nowhere: define {#" .. id .. "} or correct it")
      elseif #citation.prefix > 0 or #citation.suffix > 0 then
        fail("cross-reference @" .. id .. " with words in its brackets: write them outside")
      end
      if index > 1 then
        result:extend({ pandoc.Str(","), pandoc.Space() })
      end
      local bare = citation.mode == "SuppressAuthor"
      if HTML then
        local text = bare and numbers[id] or NAMES[kind] .. NBSP .. numbers[id]
        result:insert(pandoc.Link({ pandoc.Str(text) }, "#" .. id, "", pandoc.Attr("", { "quarto-xref" })))
      else
        result:insert(pandoc.RawInline("typst", "#ref(<" .. id .. ">" .. (bare and ", supplement: none" or "") .. ")"))
      end
    end
  end
  if references == 0 then
    return nil
  elseif references < #element.citations then
    fail("citations and cross-references in one pair of brackets: separate them")
  end
  return result
end

-- Widths that pandoc guessed from the source; every output lays columns out better by itself.
local function natural(element)
  element.colspecs = element.colspecs:map(function(spec)
    return { spec[1], nil }
  end)
  return element
end

-- A picture without caption, and so without number.
local function picture(element)
  local alt = element.attributes["fig-alt"]
  if HTML and alt then
    element.attributes["fig-alt"] = nil
    element.caption = pandoc.Inlines({ pandoc.Str(alt) })
    return element
  end
end

-- The title is the heading of the first level, and sections come below it.
local function below_title(element)
  if HTML and not SLIDES then
    element.level = element.level + 1
    return element
  end
end

function Pandoc(document)
  document = document:walk({
    traverse = "topdown",
    Header = header,
    Figure = figure,
    Div = div,
    Para = equations,
    Plain = equations,
  })
  return document:walk({ Cite = reference, Table = natural, Image = picture, Header = below_title })
end
