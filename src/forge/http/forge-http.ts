import type { ZodType } from 'zod';
import { SluiceError } from '../../foundation/sluice-error.ts';
import { checkedForm } from './checked-form.ts';
import type { ForgeResponse, Method } from './forge-response.ts';
import { ForgeTransport, type ForgeTransportOptions, requestName } from './forge-transport.ts';
import { tokenAccount } from './token-account.ts';
import { TokenCache } from './token-cache.ts';

export interface ForgeHttpOptions extends ForgeTransportOptions {
  /** Reads the token. Called again after a minute, and when the host does not accept it. */
  readonly token: (signal: AbortSignal) => Promise<string>;
}

interface Content {
  readonly body?: unknown;
  readonly signal: AbortSignal;
}

/** Sends requests with a token to an API of JSON. Rejects as the contract of `Forge` says. */
export class ForgeHttp {
  readonly #transport: ForgeTransport;
  readonly #token: TokenCache<string>;

  constructor(options: ForgeHttpOptions) {
    this.#transport = new ForgeTransport(options);
    this.#token = new TokenCache(options.token, options.now);
  }

  /** Returns the JSON of the response in the form of a schema. */
  async json<Result>(schema: ZodType<Result>, method: Method, path: string, content: Content): Promise<Result> {
    return this.#parse(schema, method, path, await this.send(method, path, content));
  }

  /** Reads a page of a list. `total` is the number of entries of all pages; undefined where the host does not report it. */
  async page<Result>(
    schema: ZodType<Result>,
    path: string,
    content: Content,
  ): Promise<{ readonly entries: Result; readonly total: number | undefined }> {
    const { text, headers } = await this.#send('GET', path, content);
    const total = headers['x-total-count'];
    return {
      entries: this.#parse(schema, 'GET', path, text),
      total: typeof total === 'string' && /^\d{1,9}$/.test(total) ? Number(total) : undefined,
    };
  }

  /** Returns the body of the response. `path` begins with `/`, without the path of the API. */
  async send(method: Method, path: string, content: Content): Promise<string> {
    return (await this.#send(method, path, content)).text;
  }

  #parse<Result>(schema: ZodType<Result>, method: Method, path: string, text: string): Result {
    const what = requestName(method, `${this.#transport.api}${path}`);
    let value: unknown;
    try {
      value = JSON.parse(text);
    } catch {
      throw new SluiceError('Corrupt', `the response to ${what} is no JSON`);
    }
    return checkedForm(schema, value, what);
  }

  async #send(method: Method, path: string, { body, signal }: Content): Promise<ForgeResponse> {
    const token = await this.#token.read(signal);
    const headers = {
      accept: 'application/json',
      authorization: `token ${token}`,
      'user-agent': 'sluice',
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    };
    const url = `${this.#transport.api}${path}`;
    const response = await this.#transport.send({
      ...{ url, method, headers, secret: token, account: tokenAccount(token), signal },
      body: body === undefined ? null : JSON.stringify(body),
    });
    if (response.status >= 200 && response.status < 300) return response;
    if (response.status === 401) this.#token.forget();
    throw this.#transport.errorOf(requestName(method, url), response);
  }

  close(): Promise<void> {
    return this.#transport.close();
  }
}
