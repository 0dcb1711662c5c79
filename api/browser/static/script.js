"use strict";

// Keys on the page for judging press what shows them.
document.addEventListener("keydown", (event) => {
  const typing = event.target.matches("input:not([type=checkbox]), select, textarea");
  if (typing || event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  const target = document.querySelector(`[data-key="${CSS.escape(event.key)}"]`);
  if (target) target.click();
});

// A vote is sent without leaving the page, so that it stays on the screen while the server is away; a comment that is
// being written is kept in the browser until then, whatever becomes of the page.
const sheet = document.querySelector("form[data-draft]");
if (sheet) {
  const comment = sheet.elements.namedItem("comment");
  const draft = "draft " + sheet.dataset.draft;
  if (comment.value) localStorage.setItem(draft, comment.value); // typed before this script was there
  else comment.value = localStorage.getItem(draft) ?? "";
  comment.addEventListener("input", () => localStorage.setItem(draft, comment.value));
  sheet.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (!event.submitter?.value) return; // Enter in the comment answers nothing
    const body = new URLSearchParams(new FormData(sheet, event.submitter));
    const response = await fetch(sheet.action, { method: "POST", body }).catch(() => null);
    const fault = document.getElementById("unstored");
    fault.hidden = response?.ok ?? false;
    if (!response) return;
    if (!response.ok) {
      const page = new DOMParser().parseFromString(await response.text(), "text/html");
      fault.textContent = page.querySelector("main").textContent;
      return;
    }
    localStorage.removeItem(draft);
    location.assign(response.url);
  });
}

// Parts of a page that change by themselves are fetched anew while the page says so; its focus and scroll stay.
const refresh = async () => {
  const response = await fetch(location.href).catch(() => null);
  if (!response || !response.ok) return; // the server is away: the next time
  const fresh = new DOMParser().parseFromString(await response.text(), "text/html");
  for (const part of document.querySelectorAll("[data-live]")) {
    const other = fresh.getElementById(part.id);
    const text = other ? other.innerHTML : ""; // a part that is over is empty
    if (part.dataset.text === text || (other && part.contains(document.activeElement))) continue;
    part.dataset.text = text;
    part.replaceChildren(...(other ? other.childNodes : []));
  }
  document.dispatchEvent(new Event("hapax:plots"));
  if (!fresh.querySelector("[data-running]")) clearInterval(timer);
};
const timer = document.querySelector("[data-running]") ? setInterval(refresh, 2000) : 0;

// Rules that are being edited are checked when nobody has typed for a moment; a fault's link leads to its line.
const edited = document.querySelector("form[data-checked]");
if (edited) {
  const text = edited.elements.namedItem("text");
  const check = async () => {
    const body = new URLSearchParams(new FormData(edited));
    const response = await fetch(edited.action, { method: "POST", body }).catch(() => null);
    if (!response?.ok) return; // the server is away: the next time
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    document.getElementById("checks").replaceChildren(...page.getElementById("checks").childNodes);
  };
  let waiting = 0;
  text.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(check, 400);
  });
  document.getElementById("checks").addEventListener("click", (event) => {
    const { line, column } = event.target.dataset;
    if (!line) return;
    event.preventDefault();
    const before = text.value.split("\n").slice(0, line - 1).join("\n");
    const start = before.length + (line > 1 ? 1 : 0) + Number(column) - 1;
    text.focus();
    text.setSelectionRange(start, start + 1);
  });
}

// Fields without a choice stay out of the address.
document.addEventListener("formdata", (event) => {
  if (!event.target.matches("[data-sparse]")) return;
  for (const [name, value] of [...event.formData]) if (value === "") event.formData.delete(name);
});
