// Unpacks the data and shows it.

async function start() {
  const bytes = Uint8Array.from(atob(byId("data").textContent), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const data = await new Response(stream).json();
  document.documentElement.classList.toggle("dark", dark);
  document.querySelector("main").hidden = false;
  byId("title").textContent = data.title;
  const examples = exampleTable();
  const openAddress = showMmlu(data.mmlu, examples);
  byId("scored").hidden = !data.outcomes.length;
  if (data.outcomes.length) showResults(data, examples);
  openAddress();
  document.body.dataset.state = "ready";
}

start().catch((error) => {
  byId("problem").hidden = false;
  byId("problem").textContent = `This page could not be read (${error}). A current Firefox, Chrome, Edge or Safari can.`;
  document.body.dataset.state = "failed";
});
