// The parts of Observable Plot that api/browser/static/plots.js uses; the bundle leaves out what they do not need.
export { barX, dodgeY, dot, link, plot, rectY, ruleX, ruleY, text } from "@observablehq/plot";
