// A session of the debug adapter with the client that VS Code tests its own adapters with
// (npm: @vscode/debugadapter-testsupport). Arguments: python, program, line. Prints a line of JSON
// for each thing that it has seen; a failed assertion ends it with status 1.

const assert = require("assert");
const { DebugClient } = require("@vscode/debugadapter-testsupport");

async function main(python, program, line) {
  const client = new DebugClient(python, "", "basedsl", {
    env: process.env,
  });
  // The client starts `runtime executable`: ours is a module.
  const spawn = require("child_process").spawn;
  require("child_process").spawn = (runtime, args, options) =>
    spawn(runtime, ["-m", "basedsl_cute.sim.debugging.dap"], options);
  client.defaultTimeout = 240000;
  await client.start();
  const say = (what) => console.log(JSON.stringify(what));

  // VS Code's order: initialize, launch; at `initialized` all breakpoints, those of functions and
  // exceptions where supported, configurationDone; at `stopped` threads, stackTrace, scopes,
  // variables, evaluate of watches.
  const stopped = client.waitForEvent("stopped");
  const output = [];
  client.on("output", (event) => output.push(event.body));
  const capabilities = (
    await client.initializeRequest({
      clientID: "vscode", clientName: "Visual Studio Code", adapterID: "basedsl", pathFormat: "path",
      linesStartAt1: true, columnsStartAt1: true, supportsVariableType: true,
      supportsVariablePaging: true, supportsRunInTerminalRequest: true, locale: "en",
      supportsProgressReporting: true, supportsInvalidatedEvent: true, supportsMemoryReferences: true,
    })
  ).body;
  say({ capabilities: Object.keys(capabilities).sort() });
  const launching = client.launchRequest({
    type: "basedsl", request: "launch", name: "Kernels", program, args: [], env: { WORD: "code" },
    cwd: require("path").dirname(program), python, stopOnEntry: false, justMyCode: true,
    __configurationTarget: 6, __sessionId: "0",
  });
  await client.waitForEvent("initialized");
  const set = await client.setBreakpointsRequest({
    source: { name: "program.py", path: program },
    lines: [line], breakpoints: [{ line, condition: "thread == 37 and i > 4" }],
    sourceModified: false,
  });
  assert.strictEqual(set.body.breakpoints[0].verified, true);
  if (capabilities.supportsFunctionBreakpoints)
    await client.setFunctionBreakpointsRequest({ breakpoints: [] });
  await client.setExceptionBreakpointsRequest({ filters: [] });
  if (capabilities.supportsConfigurationDoneRequest) await client.configurationDoneRequest();
  await launching;

  const event = (await stopped).body;
  assert.strictEqual(event.reason, "breakpoint");
  const threads = (await client.threadsRequest()).body.threads;
  const trace = await client.stackTraceRequest({ threadId: event.threadId, startFrame: 0, levels: 20 });
  const frame = trace.body.stackFrames[0];
  assert.strictEqual(frame.line, line);
  const scopes = (await client.scopesRequest({ frameId: frame.id })).body.scopes;
  const found = {};
  for (const scope of scopes)
    for (const one of (await client.variablesRequest(
      { variablesReference: scope.variablesReference })).body.variables)
      found[one.name] = one.value;
  const watch = await client.evaluateRequest(
    { expression: "total", frameId: frame.id, context: "watch" });
  const hover = await client.evaluateRequest(
    { expression: "i", frameId: frame.id, context: "hover" });
  say({ thread: event.threadId, threads: threads.length, name: frame.name, variables: found,
        total: watch.body.result, i: hover.body.result });
  const next = client.waitForEvent("stopped");
  await client.nextRequest({ threadId: event.threadId });
  // The next line is that of the breakpoint again, in the next turn of the loop.
  assert.ok(["step", "breakpoint"].includes((await next).body.reason));
  await client.setBreakpointsRequest({ source: { path: program }, lines: [], breakpoints: [] });
  const ended = client.waitForEvent("terminated");
  await client.continueRequest({ threadId: event.threadId });
  await ended;
  await client.disconnectRequest({ restart: false, terminateDebuggee: true });
  say({ stdout: output.filter((o) => o.category === "stdout").map((o) => o.output).join("") });
  process.exit(0);
}

main(process.argv[2], process.argv[3], Number(process.argv[4])).catch((error) => {
  console.error(error);
  process.exit(1);
});
