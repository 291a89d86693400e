// The dev service that the tests use, and programs around it.

import { readFileSync } from "node:fs";
import http from "node:http";
import net, { type AddressInfo } from "node:net";
import { Fanfare } from "@fanfare/client";

const path = process.env["FANFARE_DEV"];
if (!path) throw new Error("FANFARE_DEV must name the dev.json of a running service");
export const dev = JSON.parse(readFileSync(path, "utf8")) as { base_url: string; test_key: string; sandbox_url: string };

export function client(options: { baseUrl?: string; apiKey?: string; maxRetries?: number; fetch?: typeof fetch } = {}): Fanfare {
  return new Fanfare({ apiKey: dev.test_key, baseUrl: dev.base_url, ...options });
}

export interface Received {
  body: Buffer;
  headers: http.IncomingHttpHeaders;
}

/** Starts a webhook receiver; `next` waits for a request that was not returned yet. */
export async function receiver(): Promise<{ url: string; next(): Promise<Received>; close(): void }> {
  const received: Received[] = [];
  const waiting: ((request: Received) => void)[] = [];
  const server = http.createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      response.end();
      const one = { body: Buffer.concat(chunks), headers: request.headers };
      const waiter = waiting.shift();
      if (waiter) waiter(one);
      else received.push(one);
    });
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`,
    next: () => {
      const one = received.shift();
      return one ? Promise.resolve(one) : new Promise((resolve) => waiting.push(resolve));
    },
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

/** Starts a TCP proxy to the service that closes its first connection instead of passing on the response. */
export async function lossyProxy(): Promise<{ baseUrl: string; connections(): number; close(): void }> {
  const service = new URL(dev.base_url);
  let connections = 0;
  const sockets: net.Socket[] = [];
  const server = net.createServer((inbound) => {
    const isLossy = connections++ === 0;
    const outbound = net.connect(Number(service.port), service.hostname);
    inbound.on("error", () => outbound.destroy());
    outbound.on("error", () => inbound.destroy());
    inbound.pipe(outbound);
    outbound.on("close", () => inbound.destroy());
    inbound.on("close", () => outbound.destroy());
    if (isLossy) outbound.once("data", () => outbound.destroy());
    else outbound.pipe(inbound);
    sockets.push(inbound);
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  const { port } = server.address() as AddressInfo;
  return {
    baseUrl: `http://127.0.0.1:${port}${service.pathname}`,
    connections: () => connections,
    close: () => {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

/** Returns the URL of a port on which nothing listens. */
export async function nobody(): Promise<string> {
  const server = net.createServer();
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  const { port } = server.address() as AddressInfo;
  await new Promise((closed) => server.close(closed));
  return `http://127.0.0.1:${port}/api/v1`;
}
