// Writes api/browser/static/observable-plot.js: Observable Plot in one file, with the licences of all that is in it.
import { readFileSync, writeFileSync } from "node:fs";
import { build } from "esbuild";

const TARGET = new URL(process.argv[2] ?? "../../api/browser/static/observable-plot.js", import.meta.url);
// The parts that api/browser/static/plots.js uses; the bundle leaves out what they do not need.
const contents = 'export { barX, dodgeY, dot, link, plot, rectY, ruleX, ruleY, text } from "@observablehq/plot";';
const bundled = await build({
  stdin: { contents, resolveDir: "." }, bundle: true, minify: true, format: "iife", globalName: "Plot", charset: "ascii",
  target: "es2020", metafile: true, write: false, legalComments: "none",
});

// ISC, MIT and BSD ask that copies carry their copyright lines and terms; the terms stand once for each wording.
const packages = new Set(
  Object.keys(bundled.metafile.inputs).map((path) => path.match(/node_modules\/((?:@[^/]+\/)?[^/]+)/)?.[1]).filter(Boolean),
);
const byTerms = new Map();
for (const name of [...packages].sort()) {
  const text = readFileSync(`node_modules/${name}/LICENSE`, "utf8");
  const lines = text.split("\n").map((line) => line.trim());
  const holders = lines.filter((line) => /^copyright (\(c\) )?\d/i.test(line)).join("; ");
  const terms = lines.filter((line) => !/^copyright (\(c\) )?\d/i.test(line)).join("\n").replace(/\s+/g, " ").trim();
  byTerms.set(terms, [...(byTerms.get(terms) ?? []), `${name}: ${holders}`]);
}
const notices = [...byTerms].map(([terms, names]) => `${names.join("\n")}\n\n${terms}`).join("\n\n");
const { version } = JSON.parse(readFileSync("node_modules/@observablehq/plot/package.json", "utf8"));
const heading = `Observable Plot ${version} and the packages it needs, written by tools/plots/build.mjs.`;
writeFileSync(TARGET, `/*\n${heading}\n\n${notices.replaceAll("*/", "* /")}\n*/\n${bundled.outputFiles[0].text}`);
