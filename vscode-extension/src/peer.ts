/** Who is at the other end of a loopback connection: a port of the loopback interface is open to all users of a machine. */

import * as fs from "node:fs/promises";
import type * as net from "node:net";

const UID = 7; // columns of /proc/net/tcp, see proc(5)

/** False if the connection comes from another user; true also where the system does not tell (only Linux does). */
export async function isOwn(socket: net.Socket): Promise<boolean> {
  const { remotePort, localPort } = socket;
  if (process.platform !== "linux" || process.getuid === undefined || remotePort === undefined || localPort === undefined) {
    return true;
  }
  const table = await fs.readFile("/proc/net/tcp", "utf8").catch(() => "");
  const uid = ownerOf(table, remotePort, localPort);
  return uid === null || uid === process.getuid();
}

/** The user of the connection from port *from* to port *to*, both on 127.0.0.1; null if it is not there. */
export function ownerOf(table: string, from: number, to: number): number | null {
  const end = (port: number): string => `0100007F:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  for (const line of table.split("\n").slice(1)) {
    const columns = line.trim().split(/\s+/);
    if (columns[1] === end(from) && columns[2] === end(to)) {
      return Number(columns[UID]);
    }
  }
  return null;
}
