import type { IncomingMessage, ServerResponse } from 'node:http';
import type { User } from '../authentication/user.ts';
import type { Answer } from '../http/answer.ts';
import type { RequestInfo } from '../http/request-path.ts';
import type { ServedResource } from './served-resources.ts';

/** One request on its way through the server, with what is known of it so far. */
export class Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** Names the request in the log, in the audit log and to the client. */
  readonly id: string;
  /** Milliseconds since the epoch. */
  readonly startedAt: number;
  readonly aborted = new AbortController();
  readonly warnings: string[] = [];
  info: RequestInfo | undefined;
  query = new URLSearchParams();
  /** Whom the request is judged as. */
  user: User | undefined;
  /** Who sent it, if that is somebody else. */
  impersonator: User | undefined;
  resource: ServedResource | undefined;
  /** True for a question in the form of an object. */
  review = false;
  dryRun = false;
  /** The name of the object that a body is about, where the URL has none. */
  name = '';

  constructor(request: IncomingMessage, response: ServerResponse, id: string, startedAt: number) {
    this.request = request;
    this.response = response;
    this.id = id;
    this.startedAt = startedAt;
  }
}

/** A path outside of the resources that somebody may ask for. */
export interface PathRequest {
  readonly path: string;
  readonly query: URLSearchParams;
  readonly request: IncomingMessage;
}

/** Answers some paths; undefined for all others. */
export type PathHandler = (request: PathRequest) => Answer | undefined | Promise<Answer | undefined>;
