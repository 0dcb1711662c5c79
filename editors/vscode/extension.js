// Starts `hapax rules lsp` for rule files; everything else is in the server.
const { workspace } = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

function activate() {
  const settings = workspace.getConfiguration("hapax");
  const server = { command: settings.get("command"), args: ["rules", "lsp", ...settings.get("arguments")] };
  client = new LanguageClient("hapax", "Hapax", server, { documentSelector: [{ language: "hapax" }] });
  return client.start();
}

function deactivate() {
  return client?.stop();
}

module.exports = { activate, deactivate };
