import type { Clock } from '../foundation/time/clock.ts';
import type { Registry } from '../resource/storage/registry.ts';
import type { Authenticator } from './authentication/authenticator.ts';
import type { User } from './authentication/user.ts';
import type { Authorizer } from './authorization/authorizer.ts';
import type { Admission } from './handlers/handler.ts';
import { DISCARD_TIMEOUT_MS } from './http/answer.ts';
import type { ProtobufDecoder } from './http/request-body.ts';
import { DEFAULT_IN_FLIGHT, type InFlightLimits } from './limits/in-flight.ts';
import { DEFAULT_OPEN_REQUESTS, type OpenRequestLimits } from './limits/open-requests.ts';
import type { PathHandler } from './request/path-handler.ts';
import type { RequestRecord } from './request/request-record.ts';
import type { VirtualResource } from './reviews/virtual-resource.ts';

export interface ServerLimits {
  /** Bytes of a body, after inflation. */
  readonly maxBodyBytes: number;
  /** Milliseconds within which a whole body must arrive. */
  readonly bodyTimeoutMs: number;
  /** Milliseconds for which the remaining body is still read after its request was refused. */
  readonly discardTimeoutMs: number;
  readonly openRequests: OpenRequestLimits;
  /** Milliseconds until the response to a request must begin. */
  readonly requestTimeoutMs: number;
  readonly inFlight: InFlightLimits;
  readonly maxWatches: number;
  readonly maxWatchesOfUser: number;
}

export const DEFAULT_LIMITS: ServerLimits = {
  maxBodyBytes: 6 * 1024 * 1024,
  bodyTimeoutMs: 30_000,
  discardTimeoutMs: DISCARD_TIMEOUT_MS,
  openRequests: DEFAULT_OPEN_REQUESTS,
  requestTimeoutMs: 60_000,
  inFlight: DEFAULT_IN_FLIGHT,
  maxWatches: 5000,
  maxWatchesOfUser: 2000,
};

export interface ApiServerOptions {
  readonly registry: Registry;
  readonly clock: Clock;
  readonly authenticator: Authenticator;
  readonly authorizer: Authorizer;
  /** Called with failures of the server itself. */
  readonly onError: (error: unknown, where: string) => void;
  /** Default: admits every write that schema and storage accept. */
  readonly admit?: Admission;
  /** Questions in the form of objects. */
  readonly reviews?: readonly VirtualResource[];
  /** Paths for users who are allowed to read them: documents, version, metrics. The first that serves a path does. */
  readonly paths?: readonly PathHandler[];
  /** Paths for every client, without authentication: the plain health checks. */
  readonly publicPaths?: readonly PathHandler[];
  /** Called first, with any method: requests that it serves prove themselves by signatures, and need no user. */
  readonly webhooks?: PathHandler;
  /** Default: bodies in protobuf are refused. */
  readonly decodeProtobuf?: ProtobufDecoder;
  /** Users whose requests have separate slots. Default: service accounts, which controllers use. */
  readonly hasPriority?: (user: User) => boolean;
  readonly onRequest?: (record: RequestRecord) => void;
  readonly limits?: Partial<Omit<ServerLimits, 'inFlight' | 'openRequests'>> & {
    readonly inFlight?: Partial<InFlightLimits>;
    readonly openRequests?: Partial<OpenRequestLimits>;
  };
  /** From 0 up to 1. Default: `Math.random`. */
  readonly random?: () => number;
}
