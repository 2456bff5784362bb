// The part of the Python extension's API that says which interpreter its user has chosen: what the test has written
// into $DAP_TEST_INTERPRETER, and none without it.
const fs = require("fs");

const chosen = () => {
  const file = process.env.DAP_TEST_INTERPRETER;
  return fs.existsSync(file) ? fs.readFileSync(file, "utf8") : "";
};
exports.activate = () => ({ environments: { getActiveEnvironmentPath: () => ({ path: chosen() }) } });
