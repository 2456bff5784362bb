import assert from "node:assert/strict";
import { once } from "node:events";
import * as net from "node:net";
import { test } from "node:test";
import { isOwn, ownerOf } from "../src/peer";

const TABLE = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1 0
   1: 0100007F:C350 0100007F:1F90 01 00000000:00000000 00:00000000 00000000  1001        0 2 1 0
   2: 0100007F:1F90 0100007F:C350 01 00000000:00000000 00:00000000 00000000     0        0 3 1 0
`;

test("the other end's user is found, not our own end's", () => {
  assert.equal(ownerOf(TABLE, 50000, 8080), 1001);
  assert.equal(ownerOf(TABLE, 50001, 8080), null);
});

test("a connection of our own is our own", async () => {
  const server = net.createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const client = net.connect((server.address() as net.AddressInfo).port, "127.0.0.1");
  const [socket] = (await once(server, "connection")) as [net.Socket];
  assert.ok(await isOwn(socket));
  client.destroy();
  server.close();
});
