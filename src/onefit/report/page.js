"use strict";
(() => {
  const figures = JSON.parse(document.getElementById("figures").textContent);
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const paper = window.matchMedia("print");
  const places = Array.from(document.querySelectorAll("[data-figure]"));

  // Colours that follow the page: ink for text, a thin line for grids.
  const colours = (night, layout) => {
    const ink = night ? "#e8eaed" : "#1b1f24";
    const line = night ? "#3a4149" : "#d5dae0";
    const set = { "font.color": ink };
    for (const axis of Object.keys(layout).filter((name) => /^[xy]axis\d*$/.test(name))) {
      set[axis + ".gridcolor"] = line;
      set[axis + ".zerolinecolor"] = line;
      set[axis + ".linecolor"] = line;
    }
    return set;
  };
  const paint = (night) =>
    places.forEach((place) => Plotly.relayout(place, colours(night, place.layout)));
  const follow = () => paint(dark.matches && !paper.matches);

  // Only these: Plotly's own choice of buttons has one that sends the figure to its makers.
  const buttons = [["toImage"], ["zoom2d", "pan2d"], ["zoomIn2d", "zoomOut2d", "resetScale2d"]];
  const options = { responsive: true, displaylogo: false, modeBarButtons: buttons };
  const drawn = places.map((place) => {
    const figure = figures[place.dataset.figure];
    return Plotly.newPlot(place, figure.data, figure.layout, options);
  });
  Promise.all(drawn).then(() => {
    follow();
    document.documentElement.dataset.ready = "yes";
  });
  dark.addEventListener("change", follow);
  paper.addEventListener("change", follow);
  window.addEventListener("beforeprint", () => paint(false));
  window.addEventListener("afterprint", follow);
})();
