"use strict";

// Keys 1 to 5 on the page for judging: they press what shows their number.
document.addEventListener("keydown", (event) => {
  const typing = event.target instanceof HTMLInputElement && event.target.type !== "submit";
  if (typing || event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  const target = document.querySelector(`#judge [data-key="${CSS.escape(event.key)}"]`);
  if (target) target.click();
});

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

// Fields without a choice stay out of the address.
document.addEventListener("formdata", (event) => {
  if (!event.target.matches(".facets")) return;
  for (const [name, value] of [...event.formData]) if (value === "") event.formData.delete(name);
});
