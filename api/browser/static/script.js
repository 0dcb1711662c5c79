// Keys 1 to 5 on the page for judging: they press what shows their number.
"use strict";
document.addEventListener("keydown", (event) => {
  const typing = event.target instanceof HTMLInputElement && event.target.type !== "submit";
  if (typing || event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  const target = document.querySelector(`#judge [data-key="${CSS.escape(event.key)}"]`);
  if (target) target.click();
});
