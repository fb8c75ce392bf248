"use strict";
(() => {
  const specs = JSON.parse(document.getElementById("chart-data").textContent);
  const narrow = window.matchMedia("(max-width: 40rem)");
  const views = [];
  // The interpreter (ast) needs no eval, and neither style sheet of the library is admitted by the page's policy.
  const options = {
    mode: "vega-lite", renderer: "svg", ast: true, actions: false, defaultStyle: false,
    tooltip: { disableDefaultStyle: true },
  };
  const draw = async (plot) => {
    const spec = specs[plot.dataset.chart];
    spec.params[0].value = narrow.matches;
    try {
      views.push((await window.vegaEmbed(plot, spec, options)).view);
    } catch (error) {
      plot.textContent = `The chart could not be drawn: ${error.message}`;
    }
  };
  narrow.addEventListener("change", () => {
    for (const view of views) view.signal("narrow", narrow.matches).runAsync();
  });
  const all = async () => {
    for (const plot of document.querySelectorAll(".plot")) {
      await draw(plot);
      await new Promise((done) => setTimeout(done));
    }
  };
  for (const box of document.querySelectorAll(".charts")) box.hidden = false;
  all();
})();
