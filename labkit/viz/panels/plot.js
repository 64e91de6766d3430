// A plot that follows a figure. plotly.js comes from the kernel, gzipped, and is unpacked once per page.

const page = (globalThis.labkitPlots ??= { plotly: undefined, turn: Promise.resolve() });

async function unpack(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const source = await new Response(stream).text();
  const module = { exports: {} };
  new Function("module", "exports", "define", source)(module, module.exports);
  return module.exports;
}

// The plots of a page are drawn one at a time, with as much time for clicks and keys in between.
function inTurn(draw) {
  page.turn = page.turn
    .then(async () => {
      const began = performance.now();
      await draw();
      await new Promise((done) => setTimeout(done, performance.now() - began));
    })
    .catch(console.error);
}

async function render({ model, el }) {
  page.plotly ??= unpack(model.get("_library"));
  const Plotly = await page.plotly;
  const plot = document.createElement("div");
  plot.setAttribute("role", "figure");
  plot.style.contain = "layout style paint"; // measuring a text lays out this plot and not the whole page
  el.append(plot);

  let waiting = false, gone = false, width = 0;
  function follow() {
    if (waiting) return; // the newest figure is taken when it is this plot's turn
    waiting = true;
    inTurn(async () => {
      waiting = false;
      if (gone || !el.offsetWidth) return; // a hidden one is drawn when it is shown
      if (width && width !== el.offsetWidth) Plotly.purge(plot); // else the legend stays where it was
      width = el.offsetWidth;
      const { data, layout, config } = JSON.parse(model.get("figure"));
      plot.setAttribute("aria-label", layout.meta?.summary ?? "");
      // With a size of its own: plotly's way to follow a page's width forgets the height.
      await Plotly.react(plot, data, { ...layout, width, autosize: false }, config);
    });
  }

  follow();
  model.on("change:figure", follow);
  const resized = new ResizeObserver(() => el.offsetWidth !== width && follow());
  resized.observe(el);
  return () => {
    gone = true;
    model.off("change:figure", follow);
    resized.disconnect();
    Plotly.purge(plot);
  };
}

export default { render };
