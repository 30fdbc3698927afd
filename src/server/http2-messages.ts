import { Http2ServerRequest, Http2ServerResponse } from 'node:http2';

/** A request of HTTP/2 with what the server uses of one of HTTP/1. */
export class Http2Request extends Http2ServerRequest {
  /** True if the client has sent the whole body. */
  isWhole: boolean;

  constructor(...parameters: ConstructorParameters<typeof Http2ServerRequest>) {
    super(...parameters);
    const { stream } = this;
    this.isWhole = stream.endAfterHeaders;
    // A client that resets the stream without an error ends its body too, wherever that is; the stream is closed then.
    stream.once('end', () => {
      if (!stream.closed) this.isWhole = true;
    });
  }
}

/** A response of HTTP/2 with what the server uses of one of HTTP/1. */
export class Http2Response extends Http2ServerResponse<Http2Request> {
  /** Milliseconds for reading the response after it was written. */
  readMs = 0;
  /** Called when the response is written. */
  onEnd: () => void = () => undefined;

  override end(...data: unknown[]): this {
    // A closed stream emits no second event that would stop a timer.
    if (this.stream.closed || this.stream.destroyed) return super.end(...(data as []));
    const timer = setTimeout(() => this.stream.destroy(), this.readMs);
    this.stream.once('close', () => clearTimeout(timer));
    super.end(...(data as []));
    this.onEnd();
    return this;
  }
}

// The compatibility API lacks these, or has them with another meaning than HTTP/1. TypeScript does not permit that an accessor overrides a property.
defineGetters(Http2Request.prototype, {
  headersDistinct: (request) => distinctHeaders(request.rawHeaders),
  complete: ({ isWhole }) => isWhole,
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
