"use strict";
(() => {
  const sheet = JSON.parse(document.getElementById("sheet").textContent);
  const form = document.getElementById("answers");
  const status = document.getElementById("status");
  const key = "hapax votes " + sheet.sheet;
  const required = sheet.rows.filter((row) => row.required);

  const named = (name) => Array.from(form.querySelectorAll(`[name="${name}"]`));
  const answer = (row) => (named("row-" + row.row).find((input) => input.checked) || { value: "" }).value;
  const comment = (row) => (named("comment-" + row.row)[0] || { value: "" }).value;
  const open = () => required.filter((row) => answer(row) === "");

  function keep() {
    const rows = sheet.rows.map((row) => [row.row, answer(row), comment(row)]);
    try {
      localStorage.setItem(key, JSON.stringify({ voter: named("voter")[0].value, rows }));
      return "";
    } catch {
      return "; this browser cannot store answers, so save the file before you close the page";
    }
  }

  function restore() {
    try {
      const kept = JSON.parse(localStorage.getItem(key));
      if (kept === null) return;
      named("voter")[0].value = kept.voter;
      for (const [number, given, remark] of kept.rows) {
        for (const input of named("row-" + number)) input.checked = input.value === given;
        for (const input of named("comment-" + number)) input.value = remark;
      }
    } catch {
      // Nothing was stored, or the browser does not allow it.
    }
  }

  function show(more) {
    const left = open().length;
    document.getElementById("progress").max = required.length;
    document.getElementById("progress").value = required.length - left;
    status.textContent = `${required.length - left} of ${required.length} questions answered${more}`;
  }

  function go(row) {
    const input = named("row-" + row.row)[0];
    input.focus();
    input.scrollIntoView({ block: "center" });
  }

  function save() {
    const head = { format: sheet.format, sheet: sheet.sheet, kind: sheet.kind, voter: named("voter")[0].value };
    const lines = sheet.rows.map((row) => JSON.stringify({ ...row, answer: answer(row), comment: comment(row) }));
    const text = `${JSON.stringify(head).slice(0, -1)},"rows":[\n${lines.join(",\n")}\n]}\n`;
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
    link.download = sheet.name + ".json";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
    show(open().length ? "; the file is saved, but some questions are still open" : "; the file is saved");
  }

  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", () => show(keep()));
  form.addEventListener("keydown", (event) => {
    const fieldset = event.target.closest("fieldset");
    if (fieldset === null || event.ctrlKey || event.altKey || event.metaKey) return;
    const inputs = Array.from(fieldset.querySelectorAll("input[type=radio]"));
    const chosen = inputs.find((input) => input.value[0] === event.key.toLowerCase());
    if (chosen === undefined) return;
    event.preventDefault();
    chosen.checked = true;
    show(keep());
    const later = open().find((row) => row.row > Number(fieldset.dataset.row));
    if (later !== undefined) go(later);
  });
  document.getElementById("next").addEventListener("click", () => {
    const left = open();
    if (left.length) go(left[0]);
  });
  document.getElementById("save").addEventListener("click", save);

  restore();
  show("");
})();
