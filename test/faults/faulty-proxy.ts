import { createServer, type IncomingMessage, request } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';

/** The fault in the response to a request. */
export interface Fault {
  /** The requests that it applies to; the body is as it was sent. */
  matches(method: string, url: string, body: Buffer): boolean;
  /** The request never reaches the server. */
  readonly swallowed?: boolean;
  /** The body that is sent instead of that of the server. */
  readonly body?: Buffer;
  /** The number of bytes of the response that are forwarded: its head, which ends at `bodyStart`, and its body, without a terminator. */
  readonly cut?: (bodyStart: number, body: Buffer) => number;
  /** What happens after these bytes. */
  readonly after: 'hang' | 'close' | 'end';
}

export interface FaultyProxy {
  readonly url: string;
  fault: Fault | undefined;
  /** Resolves when a response has been sent as far as the fault permits. */
  struck(): Promise<void>;
  /** Connections on which a response hangs. */
  hanging(): number;
  close(): Promise<void>;
}

/** A proxy before an HTTP server that forwards responses byte for byte, apart from one fault. */
export async function startFaultyProxy(target: string): Promise<FaultyProxy> {
  const hanging = new Set<Socket>();
  let strike = Promise.withResolvers<void>();
  const server = createServer((incoming, response) => {
    handle(incoming).then(
      () => response.destroy(),
      () => response.destroy(),
    );
  });

  async function handle(incoming: IncomingMessage): Promise<void> {
    const { method = '', url = '', socket } = incoming;
    const body = Buffer.concat(await incoming.toArray());
    const { fault } = proxy;
    const hit = fault?.matches(method, url, body) === true ? fault : undefined;
    const answer =
      hit?.swallowed === true
        ? { head: head(200, { 'content-type': contentType(url) }), body: Buffer.alloc(0) }
        : await ask(target, incoming, body);
    const sent = hit?.body ?? answer.body;
    const start = `${sent.length.toString(16)}\r\n`;
    const whole = Buffer.concat([answer.head, Buffer.from(sent.length === 0 ? '' : start), sent]);
    if (hit === undefined || hit.after === 'end') {
      await write(socket, Buffer.concat([whole, Buffer.from(sent.length === 0 ? '0\r\n\r\n' : '\r\n0\r\n\r\n')]));
    } else {
      await write(socket, whole.subarray(0, hit.cut?.(whole.length - sent.length, sent) ?? 0));
    }
    if (hit === undefined) {
      // Other responses use connections of their own, since the head has `connection: close`.
      socket.end();
      return;
    }
    if (hit.after === 'hang') {
      hanging.add(socket);
      socket.on('close', () => hanging.delete(socket));
    }
    strike.resolve();
    if (hit.after !== 'hang') socket.end();
    else await new Promise((resolve) => socket.on('close', resolve));
  }

  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const proxy: FaultyProxy = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    fault: undefined,
    async struck() {
      await strike.promise;
      strike = Promise.withResolvers();
    },
    hanging: () => hanging.size,
    async close() {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await closed;
    },
  };
  return proxy;
}

async function ask(target: string, incoming: IncomingMessage, body: Buffer): Promise<{ head: Buffer; body: Buffer }> {
  const { method, headers, url } = incoming;
  const reply = await new Promise<IncomingMessage>((resolve, reject) => {
    const { 'transfer-encoding': _, ...rest } = headers;
    request(`${target}${url}`, { method, headers: { ...rest, 'content-length': body.length }, agent: false }, resolve)
      .on('error', reject)
      .end(body);
  });
  const { 'content-type': type = '', 'www-authenticate': asks = '' } = reply.headers;
  return {
    head: head(reply.statusCode ?? 0, { 'content-type': type, 'www-authenticate': asks }),
    body: Buffer.concat(await reply.toArray()),
  };
}

function head(status: number, headers: Readonly<Record<string, string>>): Buffer {
  const lines = Object.entries(headers)
    .filter(([, value]) => value !== '')
    .map(([name, value]) => `${name}: ${value}\r\n`);
  return Buffer.from(
    `HTTP/1.1 ${status} X\r\n${lines.join('')}transfer-encoding: chunked\r\nconnection: close\r\n\r\n`,
  );
}

function contentType(url: string): string {
  return `application/x-${url.slice(url.lastIndexOf('/') + 1)}-result`;
}

function write(socket: Socket, bytes: Buffer): Promise<void> {
  return new Promise((resolve) => {
    if (bytes.length === 0) resolve();
    else socket.write(bytes, () => resolve());
  });
}
