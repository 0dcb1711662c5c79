"use strict";
// Sorts and filters the table of rules; without it the page shows everything in the order of the run.
(() => {
  const table = document.getElementById("rule-table");
  const body = table.tBodies[0];
  const rows = Array.from(body.rows);
  const tools = document.querySelector(".tools");
  const text = document.getElementById("filter-text");
  const domain = document.getElementById("filter-domain");
  const found = document.getElementById("found");

  const key = (row, column) => {
    const cell = row.cells[column];
    if (cell.dataset.sort === undefined) return cell.textContent.trim().toLowerCase();
    return cell.dataset.sort === "" ? null : Number(cell.dataset.sort);
  };
  const compared = (one, other, down) => {
    if (one === null || other === null) return (one === null) - (other === null);
    const order = typeof one === "number" ? one - other : one.localeCompare(other, "en");
    return down ? -order : order;
  };
  const sort = (heading, column) => {
    const down = heading.getAttribute("aria-sort") !== "descending" && heading.classList.contains("number")
      || heading.getAttribute("aria-sort") === "ascending";
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", down ? "descending" : "ascending");
    rows.sort((one, other) => compared(key(one, column), key(other, column), down));
    body.append(...rows);
  };
  for (const [column, heading] of Array.from(table.tHead.rows[0].cells).entries()) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    button.addEventListener("click", () => sort(heading, column));
    heading.append(button);
  }

  const texts = new Map();
  const textOf = (row, section) => {
    if (!texts.has(row)) texts.set(row, (row.textContent + section.textContent).toLowerCase());
    return texts.get(row);
  };
  const filter = () => {
    const wanted = text.value.trim().toLowerCase();
    let shown = 0;
    for (const row of rows) {
      const section = document.getElementById(`rule-${row.dataset.rule}`);
      const fits = (!domain || domain.value === "" || row.dataset.domain === domain.value)
        && textOf(row, section).includes(wanted);
      row.hidden = !fits;
      section.hidden = !fits;
      shown += fits ? 1 : 0;
    }
    found.textContent = `${shown} of ${rows.length} rules`;
  };
  let waiting = 0;
  text.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(filter, 150); });
  if (domain) domain.addEventListener("change", filter);
  const unfold = (open) => {
    for (const one of document.querySelectorAll(".statement details")) one.open = open;
  };
  document.getElementById("unfold").addEventListener("click", () => unfold(true));
  document.getElementById("fold").addEventListener("click", () => unfold(false));
  tools.hidden = false;
})();
