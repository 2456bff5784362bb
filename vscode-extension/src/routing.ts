/** Whether a debug session goes through dap-agent, decided from its configuration alone. */

export const OWN_TYPE = "dap-agent";
const ROUTED_TYPES: readonly string[] = ["debugpy", "python"];

export interface Configuration {
  type?: string;
  request?: string;
  noDebug?: unknown;
  dapAgent?: unknown;
  debugServer?: unknown;
  debugAdapterPath?: unknown;
  connect?: unknown;
  port?: unknown;
  host?: unknown;
  subProcessId?: unknown;
  purpose?: unknown;
  module?: unknown;
  python?: unknown;
  pythonPath?: unknown;
  [key: string]: unknown;
}

export interface Address {
  readonly host: string;
  readonly port: number;
}

export type Route =
  /** Goes on as it is; why. */
  | { readonly kind: "untouched"; readonly why: string }
  /** A child of a session that goes through dap-agent already: its `debugServer` is where the parent's adapter waits. */
  | { readonly kind: "child" }
  /** Through a new adapter, which reaches *connect* or starts debugpy's adapter itself. */
  | { readonly kind: "adapter"; readonly connect: Address | null };

export interface Circumstances {
  readonly enabled: boolean;
  readonly trusted: boolean;
  /** Whether a port is one that we have given to a parent as its `debugServer`. */
  readonly isOurs: (port: unknown) => boolean;
}

export function route(configuration: Configuration, now: Circumstances): Route {
  const own = configuration.type === OWN_TYPE;
  if (!own && !ROUTED_TYPES.includes(configuration.type ?? "")) {
    return { kind: "untouched", why: `its type is ${configuration.type}` };
  }
  if (!now.trusted) {
    return { kind: "untouched", why: "the workspace is not trusted" };
  }
  if (configuration.subProcessId !== undefined && (own || configuration.debugServer !== undefined)) {
    return { kind: "child" };
  }
  if (own) {
    return { kind: "adapter", connect: addressOf(configuration) };
  }
  if (configuration.dapAgent === false) {
    return { kind: "untouched", why: 'it says "dapAgent": false' };
  }
  if (!now.enabled) {
    return { kind: "untouched", why: "dapAgent.enable is off" };
  }
  if (configuration.noDebug === true) {
    return { kind: "untouched", why: "it runs without debugging" };
  }
  if (configuration.debugServer !== undefined && !now.isOurs(configuration.debugServer)) {
    return { kind: "untouched", why: "it has a debugServer of its own" };
  }
  if (configuration.debugAdapterPath !== undefined) {
    return { kind: "untouched", why: "it has a debugAdapterPath of its own" };
  }
  return { kind: "adapter", connect: addressOf(configuration) };
}

/** Where a waiting program is to be reached, if this is an attach to one. */
export function addressOf(configuration: Configuration): Address | null {
  if (configuration.request !== "attach") {
    return null;
  }
  const given = configuration.connect as { host?: unknown; port?: unknown } | undefined;
  const port = Number(given?.port ?? configuration.port);
  if (!Number.isInteger(port) || port <= 0) {
    return null;
  }
  const host = given?.host ?? configuration.host;
  return { host: typeof host === "string" && host !== "" ? host : "127.0.0.1", port };
}

/** Whether a configuration runs tests, so that failures are to be stops although the runner catches them. */
export function runsTests(configuration: Configuration): boolean {
  const purpose = configuration.purpose;
  return (
    (Array.isArray(purpose) && purpose.includes("debug-test")) ||
    configuration.module === "pytest" ||
    configuration.module === "unittest"
  );
}

/** The interpreter that a configuration names, if any. */
export function interpreterOf(configuration: Configuration): string | null {
  for (const given of [configuration.python, configuration.pythonPath]) {
    const first: unknown = Array.isArray(given) ? given[0] : given;
    if (typeof first === "string" && first !== "") {
      return first;
    }
  }
  return null;
}
