import type { Ref } from '../../git-repository.ts';
import type { Call } from './call.ts';

export type Service = 'git-upload-pack' | 'git-receive-pack';

export interface Exchange<Result> {
  readonly service: Service;
  /** Makes the body, once for each attempt; without it, the server's advertisement is requested. */
  readonly body?: () => Uint8Array | AsyncIterable<Uint8Array>;
  readonly contentEncoding?: 'gzip' | undefined;
  /** Called, where `advertisesFirst`, with the refs before the body is sent; what it throws (a SluiceError) keeps that from being sent. */
  readonly checkRefs?: ((refs: readonly Ref[]) => void) | undefined;
  /**
   * Reads the answer, which it must bound, and ends what it does when the signal aborts. What it leaves unread is dropped with the
   * connection.
   */
  readonly read: (pieces: AsyncIterable<Uint8Array>, signal: AbortSignal) => Promise<Result>;
}

/**
 * A connection to the services of one repository. Errors: SluiceError with RequestFailure as details, and ProtocolError as thrown by
 * `read`. No message contains a secret.
 */
export interface Connection {
  readonly url: string;
  /** True if a body may have an encoding. */
  readonly compresses: boolean;
  /** True if each exchange begins with what the service advertises. */
  readonly advertisesFirst: boolean;
  run<Result>(call: Call, exchange: Exchange<Result>): Promise<Result>;
  /** Ends exchanges in progress. */
  close(): Promise<void>;
}
