import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { SluiceError } from '../../../foundation/sluice-error.ts';
import type { Ref, RefUpdate } from '../../git-repository.ts';
import type { EngineOptions } from '../../process/engine-options.ts';
import { NotSmartError, SmartHttp } from '../http/smart-http.ts';
import {
  type Capabilities,
  checkObjectFormat,
  readReceiveCapabilities,
  readUploadCapabilities,
} from '../protocol/advertisement.ts';
import type { Call } from '../protocol/call.ts';
import type { Connection, Exchange, Service } from '../protocol/connection.ts';
import { encodeFetch, type FetchRequest, readPack } from '../protocol/fetch-pack.ts';
import { encodeListRefs, readRefs } from '../protocol/list-refs.ts';
import { ProtocolError } from '../protocol/protocol-error.ts';
import { checkPushOptions, encodePush, type PushReport, readReport } from '../protocol/receive-pack.ts';
import { failureOf, type RequestFailure } from '../protocol/request-failure.ts';
import { SshConnection } from '../ssh/ssh-connection.ts';

/** Larger requests are compressed; packs are compressed already. */
const MIN_GZIP_BYTES = 1024;
/** With these statuses a server refuses a push without a preceding request for its refs, if it requires one. */
const LIST_FIRST_STATUSES = new Set([400, 404, 405, 412, 428]);

const compress = promisify(gzip);

/** The server of one remote, over HTTP or ssh, and its capabilities, which are requested once. */
export class RemoteServer {
  readonly #connection: Connection;
  #uploads: Capabilities | undefined;
  #readProblem: string | undefined;
  #receives: Capabilities | undefined;
  /** True once the server has refused a push without a preceding request for its refs. */
  #listBeforePush = false;

  constructor(url: string, options: EngineOptions) {
    const { clock, network } = options;
    this.#connection = url.startsWith('ssh:')
      ? new SshConnection(url, network.hosts)
      : new SmartHttp(url, clock, network);
  }

  get listsBeforePush(): boolean {
    return this.#listBeforePush;
  }

  /** True if each push begins with the refs of the remote, so that `checkRefs` is called. */
  get advertisesFirst(): boolean {
    return this.#connection.advertisesFirst;
  }

  /** Returns why refs and objects cannot be read with version 2 of the protocol; undefined if they can. */
  async readProblem(call: Call): Promise<string | undefined> {
    if (this.#uploads !== undefined || this.#readProblem !== undefined) return this.#readProblem;
    try {
      const offered = await this.#get(call, 'git-upload-pack', readUploadCapabilities);
      if (offered === undefined) {
        this.#readProblem = 'the server does not support version 2 of the protocol';
        return this.#readProblem;
      }
      checkObjectFormat(this.#connection.url, offered);
      const lacking = ['ls-refs', 'fetch'].filter((name) => !offered.has(name));
      if (lacking.length > 0) this.#readProblem = `the server does not offer ${lacking.join(' and ')}`;
      else this.#uploads = offered;
      return this.#readProblem;
    } catch (error) {
      // Not kept: a server that is being repaired may answer with a page.
      if (error instanceof NotSmartError) return 'the server does not support the smart protocol';
      throw this.#explained(error);
    }
  }

  /** Returns the capabilities of the server for pushes. */
  async pushCapabilities(call: Call): Promise<Capabilities> {
    if (this.#receives !== undefined) return this.#receives;
    try {
      const offered = await this.#get(call, 'git-receive-pack', (pieces) => readReceiveCapabilities(pieces, false));
      checkObjectFormat(this.#connection.url, offered);
      this.#receives = offered;
      return offered;
    } catch (error) {
      throw this.#explained(error);
    }
  }

  /** The capabilities for pushes are requested again before the next one. */
  forgetPushCapabilities(): void {
    this.#receives = undefined;
  }

  /** The refs that begin with one of the prefixes; the server may return more. Call `readProblem` first. */
  listRefs(call: Call, prefixes: readonly string[]): Promise<Ref[]> {
    return this.#post(call, encodeListRefs(prefixes, this.#uploads ?? new Map()), (pieces) =>
      readRefs(pieces, this.#connection.url),
    );
  }

  /** Fetches a pack with what is wanted and not here, for `take` to read. Call `readProblem` first. */
  fetchPack(
    call: Call,
    fetch: FetchRequest,
    take: (pack: AsyncIterable<Uint8Array>, signal: AbortSignal) => Promise<void>,
  ): Promise<void> {
    const request = encodeFetch(fetch, this.#uploads ?? new Map());
    return this.#post(call, request, (pieces, signal) => take(readPack(pieces), signal));
  }

  /**
   * Sends one atomic push. `pack` makes what follows the commands, once for each attempt; for `checkRefs` see Exchange. The server's
   * decision is in the report; errors have RequestFailure as details, which shows whether the push may have been applied.
   */
  async push(
    call: Call,
    updates: readonly RefUpdate[],
    offered: Capabilities,
    pack: (() => Uint8Array | AsyncIterable<Uint8Array>) | undefined,
    checkRefs: Exchange<PushReport>['checkRefs'],
  ): Promise<PushReport> {
    const { pushOptions = [] } = call.remote;
    checkPushOptions(this.#connection.url, pushOptions, offered);
    const commands = encodePush(updates, pushOptions, offered);
    const send = async () => {
      if (this.#listBeforePush) await this.#requestRefs(call);
      try {
        return await this.#connection.run(call, {
          service: 'git-receive-pack',
          body: () => withPack(commands, pack?.()),
          checkRefs,
          read: (pieces) => readReport(pieces, updates, offered),
        });
      } catch (error) {
        throw this.#explained(error, true);
      }
    };
    try {
      return await send();
    } catch (error) {
      const { status } = failureOf(error);
      if (this.#listBeforePush || status === undefined || !LIST_FIRST_STATUSES.has(status)) throw error;
      this.#listBeforePush = true;
      return await send().catch((second: unknown) => {
        this.#listBeforePush = false;
        throw second;
      });
    }
  }

  close(): Promise<void> {
    return this.#connection.close();
  }

  #get<Result>(
    call: Call,
    service: Service,
    read: (pieces: AsyncIterable<Uint8Array>) => Promise<Result>,
  ): Promise<Result> {
    return this.#connection.run(call, { service, read });
  }

  async #post<Result>(call: Call, request: Buffer, read: Exchange<Result>['read']): Promise<Result> {
    const zipped =
      this.#connection.compresses && request.length >= MIN_GZIP_BYTES ? await compress(request) : undefined;
    try {
      return await this.#connection.run(call, {
        service: 'git-upload-pack',
        body: () => zipped ?? request,
        contentEncoding: zipped === undefined ? undefined : 'gzip',
        read,
      });
    } catch (error) {
      throw this.#explained(error);
    }
  }

  async #requestRefs(call: Call): Promise<void> {
    try {
      await this.#get(call, 'git-receive-pack', (pieces) => readReceiveCapabilities(pieces, true));
    } catch (error) {
      throw this.#explained(error);
    }
  }

  #explained(error: unknown, mayBeApplied = false): unknown {
    if (!(error instanceof ProtocolError)) return error;
    const details: RequestFailure = { mayBeApplied };
    return new SluiceError('Unavailable', `invalid answer of remote ${this.#connection.url}: ${error.message}`, {
      cause: error,
      details,
    });
  }
}

function withPack(
  commands: Buffer,
  pack: Uint8Array | AsyncIterable<Uint8Array> | undefined,
): Uint8Array | AsyncIterable<Uint8Array> {
  if (pack === undefined) return commands;
  if (pack instanceof Uint8Array) return Buffer.concat([commands, pack]);
  return (async function* () {
    yield commands;
    yield* pack;
  })();
}
