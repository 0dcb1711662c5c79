"use strict";
// Sorts and filters the table of rules. Without this script the page shows all rules in the order of the run.
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
  const compared = (left, right, down) => {
    // Empty cells come last in either direction.
    if (left === null || right === null) return (left === null) - (right === null);
    const order = typeof left === "number" ? left - right : left.localeCompare(right, "en");
    return down ? -order : order;
  };
  const sort = (heading, column) => {
    // The first click on a column of numbers sorts the largest first.
    const down = heading.getAttribute("aria-sort") !== "descending" && heading.classList.contains("number")
      || heading.getAttribute("aria-sort") === "ascending";
    for (const cell of table.tHead.rows[0].cells) cell.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", down ? "descending" : "ascending");
    rows.sort((left, right) => compared(key(left, column), key(right, column), down));
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
    for (const details of document.querySelectorAll(".statement details")) details.open = open;
  };
  document.getElementById("unfold").addEventListener("click", () => unfold(true));
  document.getElementById("fold").addEventListener("click", () => unfold(false));
  tools.hidden = false;
})();
