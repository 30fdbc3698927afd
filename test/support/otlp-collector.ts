import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { expect } from 'vitest';
import { z } from 'zod';

const uint32 = z.number().int().min(0).max(0xffff_ffff);
/** 64-bit integers are strings in JSON: https://protobuf.dev/programming-guides/json/. */
const nanoseconds = z.string().regex(/^[1-9]\d{17,18}$/);
// Ids are hexadecimal in OTLP, unlike other bytes in the JSON of protobuf: https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding.
const traceId = z.string().regex(/^[0-9a-f]{32}$/);
const spanId = z.string().regex(/^[0-9a-f]{16}$/);
const value = z.strictObject({
  stringValue: z.string().optional(),
  boolValue: z.boolean().optional(),
  intValue: z.union([z.number().int(), z.string()]).optional(),
  doubleValue: z.number().optional(),
});
const attributes = z.array(z.strictObject({ key: z.string().min(1), value }));
const link = z.strictObject({
  ...{ traceId, spanId, attributes },
  traceState: z.string().optional(),
  droppedAttributesCount: uint32,
  flags: uint32.optional(),
});
const span = z.strictObject({
  ...{ traceId, spanId, attributes },
  traceState: z.string().optional(),
  parentSpanId: spanId.optional(),
  flags: uint32.optional(),
  name: z.string().min(1),
  kind: z.number().int().min(1).max(5),
  ...{ startTimeUnixNano: nanoseconds, endTimeUnixNano: nanoseconds },
  ...{ droppedAttributesCount: uint32, droppedEventsCount: uint32, droppedLinksCount: uint32 },
  events: z.array(z.strictObject({ timeUnixNano: nanoseconds, name: z.string(), attributes })),
  links: z.array(link),
  status: z.strictObject({ message: z.string().optional(), code: z.number().int().min(0).max(2) }),
});
/** `ExportTraceServiceRequest` of opentelemetry-proto 1, collector/trace/v1 and trace/v1: other fields are none of it. */
const request = z.strictObject({
  resourceSpans: z.array(
    z.strictObject({
      resource: z.strictObject({ attributes, droppedAttributesCount: uint32 }),
      scopeSpans: z.array(
        z.strictObject({
          scope: z.strictObject({ name: z.string(), version: z.string().optional() }),
          spans: z.array(span),
          schemaUrl: z.string().optional(),
        }),
      ),
      schemaUrl: z.string().optional(),
    }),
  ),
});

export interface ReceivedSpan extends Omit<z.infer<typeof span>, 'attributes'> {
  readonly attributes: Readonly<Record<string, unknown>>;
}

/** A collector that receives spans by OTLP over HTTP in JSON, and checks that they have the published structure. */
export class OtlpCollector implements AsyncDisposable {
  readonly spans: ReceivedSpan[] = [];
  /** Everything that it received. */
  text = '';
  /** Attributes of the last resource. */
  resource: Readonly<Record<string, unknown>> = {};
  /** The problems of requests. */
  readonly problems: unknown[] = [];
  requests = 0;
  /** The status of its responses; `none` receives requests and does not respond. */
  status: number | 'none' = 200;
  readonly #sockets = new Set<Socket>();
  readonly #server = createServer((incoming, response) => {
    this.#receive(incoming, response).catch((error: unknown) => {
      this.problems.push(error);
      response.destroy();
    });
  });

  static async start(): Promise<OtlpCollector> {
    const collector = new OtlpCollector();
    const server = collector.#server;
    server.on('connection', (socket) => {
      collector.#sockets.add(socket);
      socket.once('close', () => collector.#sockets.delete(socket));
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return collector;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Connections that are open. */
  get connections(): number {
    return this.#sockets.size;
  }

  named(name: string): ReceivedSpan[] {
    return this.spans.filter((one) => one.name === name);
  }

  /** The spans below one, at any depth. */
  below({ spanId: id }: ReceivedSpan): ReceivedSpan[] {
    const children = this.spans.filter(({ parentSpanId }) => parentSpanId === id);
    return [...children, ...children.flatMap((child) => this.below(child))];
  }

  async #receive(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    this.requests += 1;
    if (this.status === 'none') return;
    const { method, url, headers } = incoming;
    const body = await text(incoming);
    this.text += body;
    expect({ method, url, type: headers['content-type'] }).toEqual({
      ...{ method: 'POST', url: '/v1/traces', type: 'application/json' },
    });
    for (const { resource, scopeSpans } of request.parse(JSON.parse(body)).resourceSpans) {
      this.resource = valuesOf(resource.attributes);
      const spans = scopeSpans.flatMap((scope) => scope.spans);
      this.spans.push(...spans.map((one) => ({ ...one, attributes: valuesOf(one.attributes) })));
    }
    response.writeHead(this.status, { 'content-type': 'application/json' }).end('{}');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
    await once(this.#server, 'close');
  }
}

function valuesOf(list: z.infer<typeof attributes>): Record<string, unknown> {
  return Object.fromEntries(list.map(({ key, value: held }) => [key, Object.values(held)[0]]));
}
