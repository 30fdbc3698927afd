import { Http2ServerRequest, Http2ServerResponse } from 'node:http2';

/** A request of HTTP/2 with what the server uses of one of HTTP/1. */
export class Http2Request extends Http2ServerRequest {}

/** A response of HTTP/2 with what the server uses of one of HTTP/1. */
export class Http2Response extends Http2ServerResponse {
  /** Milliseconds for reading the response after it was written. */
  readMs = 0;

  override end(...data: unknown[]): this {
    // A closed stream emits no second event that would stop a timer.
    if (this.stream.closed || this.stream.destroyed) return super.end(...(data as []));
    const timer = setTimeout(() => this.stream.destroy(), this.readMs);
    this.stream.once('close', () => clearTimeout(timer));
    return super.end(...(data as []));
  }
}

// The compatibility API lacks these, or has them with another meaning than HTTP/1. TypeScript does not permit that an accessor overrides a property.
defineGetters(Http2Request.prototype, {
  headersDistinct: (request) => distinctHeaders(request.rawHeaders),
  // Also if there is no body, and so nothing reads it.
  complete: ({ readableEnded, stream }) => readableEnded || stream.endAfterHeaders || stream.destroyed,
  // One object for all requests of a connection, so that the data of its certificate is cached.
  socket: ({ stream }) => stream.session?.socket,
});
defineGetters(Http2Response.prototype, {
  destroyed: ({ stream }) => stream.destroyed,
  closed: ({ stream }) => stream.closed,
  // Node ends the writable side of a stream that the client cancels.
  writableFinished: ({ stream }) => stream.writableFinished && !stream.aborted,
});

function defineGetters<Target extends object>(
  target: Target,
  getters: Record<string, (self: Target) => unknown>,
): void {
  for (const [name, read] of Object.entries(getters)) {
    Object.defineProperty(target, name, {
      configurable: true,
      get(this: Target) {
        return read(this);
      },
    });
  }
}

/** Every value of each header, as requests of HTTP/1 have them. */
function distinctHeaders(rawHeaders: readonly string[]): Record<string, string[]> {
  const distinct: Record<string, string[]> = Object.create(null);
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const [name = '', value = ''] = [rawHeaders[at], rawHeaders[at + 1]];
    const values = distinct[name.toLowerCase()];
    if (values === undefined) distinct[name.toLowerCase()] = [value];
    else values.push(value);
  }
  return distinct;
}
