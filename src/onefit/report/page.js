"use strict";
(() => {
  const all = (query, root = document) => Array.from(root.querySelectorAll(query));

  // What a mark says, beside the pointer or the finger.
  const tip = document.getElementById("tip");
  const place = (event) => {
    const mark = event.target.closest ? event.target.closest("[data-tip]") : null;
    tip.hidden = !mark;
    if (!mark) return;
    tip.textContent = mark.dataset.tip;
    const box = tip.getBoundingClientRect();
    tip.style.left = Math.max(4, Math.min(event.clientX + 14, innerWidth - box.width - 4)) + "px";
    tip.style.top = Math.max(4, Math.min(event.clientY + 14, innerHeight - box.height - 4)) + "px";
  };
  for (const kind of ["pointermove", "pointerdown"]) document.addEventListener(kind, place);
  document.addEventListener("scroll", () => (tip.hidden = true), { passive: true });

  // A name in the legend hides and shows its marks.
  for (const button of all("[data-toggle]"))
    button.addEventListener("click", () => {
      const on = button.getAttribute("aria-pressed") !== "true";
      button.setAttribute("aria-pressed", String(on));
      for (const group of all(`[data-trace="${button.dataset.toggle}"]`, button.closest("figure")))
        group.classList.toggle("off", !on);
    });

  const save = (parts, type, name) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob(parts, { type }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  };

  // A picture outside the page has no style sheet: colours and fonts are written into it.
  const KEPT = ["fill", "stroke", "stroke-width", "font-family", "font-size", "font-weight"];
  for (const button of all("[data-picture]")) {
    button.hidden = false;
    button.addEventListener("click", () => {
      all("svg", button.closest("figure").querySelector(".figure")).forEach((svg, count) => {
        const copy = svg.cloneNode(true);
        const marks = all("text, line", svg);
        all("text, line", copy).forEach((one, i) => {
          const style = getComputedStyle(marks[i]);
          for (const name of KEPT) one.setAttribute(name, style.getPropertyValue(name));
        });
        const name = button.dataset.picture + (count ? `-${count + 1}` : "");
        save([new XMLSerializer().serializeToString(copy)], "image/svg+xml", `${name}.svg`);
      });
    });
  }

  // Numbers sort as numbers, and before words.
  const number = (text) => (/^[-+−]?[\d.]/.test(text) ? parseFloat(text.replace("−", "-")) : NaN);
  const compare = (a, b) => {
    const x = number(a), y = number(b);
    if (!isNaN(x) && !isNaN(y)) return x - y;
    return isNaN(x) - isNaN(y) || a.localeCompare(b);
  };
  // A cell that a spreadsheet would take for a formula gets an apostrophe.
  const cell = (text) => {
    const safe = /^[=+@\t\r]/.test(text) || (/^-/.test(text) && isNaN(number(text))) ? "'" + text : text;
    return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };
  for (const tools of all(".tools")) {
    const table = tools.nextElementSibling.querySelector("table");
    const body = table.tBodies[0];
    const heads = Array.from(table.tHead.rows[0].cells);
    tools.hidden = false;
    heads.forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = head.textContent;
      head.replaceChildren(button);
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") === "ascending";
        heads.forEach((one) => one.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const rows = Array.from(body.rows);
        rows.sort((a, b) =>
          (down ? -1 : 1) * compare(a.cells[column].textContent, b.cells[column].textContent));
        const seen = rows.filter((row) => !row.classList.contains("more")).length;
        rows.forEach((row, i) => row.classList.toggle("more", i >= seen));
        body.append(...rows);
      });
    });
    const filter = tools.querySelector("input");
    if (filter)
      filter.addEventListener("input", () => {
        const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
        table.classList.toggle("all", words.length > 0 || table.dataset.all === "yes");
        for (const row of body.rows) {
          const cells = Array.from(row.cells, (one) => one.textContent.toLowerCase());
          row.classList.toggle("out", !words.every((word) => cells.some((one) => one.includes(word))));
        }
      });
    const more = tools.querySelector("[data-all]");
    if (more)
      more.addEventListener("click", () => {
        table.dataset.all = "yes";
        table.classList.add("all");
        more.hidden = true;
      });
    tools.querySelector("[data-save]").addEventListener("click", (event) => {
      const rows = [table.tHead.rows[0], ...body.rows];
      const lines = rows.map((row) => Array.from(row.cells, (one) => cell(one.textContent)).join(","));
      save(["\ufeff" + lines.join("\r\n") + "\r\n"], "text/csv", `${event.target.dataset.save}.csv`);
    });
  }
  document.documentElement.dataset.ready = "yes";
})();
