import type { IncomingMessage, ServerResponse } from 'node:http';
import type { RequestContext } from '../../resource/object/request-context.ts';
import type { User } from '../authentication/user.ts';
import type { ApiResponse, StreamedResponse } from '../http/answer.ts';
import type { Representation } from '../http/media-type.ts';
import type { RequestBody } from '../http/request-body.ts';
import type { RequestInfo } from '../http/request-path.ts';
import type { Status } from '../http/status.ts';
import type { OpenRequest } from '../limits/open-requests.ts';
import type { ServedResource } from './served-resources.ts';

/** The results of the filters, in their order. */
export interface RequestState {
  /** From the method and the URL. */
  info: RequestInfo;
  query: URLSearchParams;
  /** The user that the credentials prove. */
  sender: User;
  /** The effective user of the request: the sender, or the user that the sender impersonates. */
  user: User;
  /** Accounts for the memory of the request until it ends. */
  openRequest: OpenRequest;
  /** True for a review: a question in the form of an object, which is not stored. */
  isReview: boolean;
  resource: ServedResource;
  /** Produces the response. */
  handler: () => Promise<ApiResponse | StreamedResponse>;
  /** The whole body; empty for methods without one. */
  body: RequestBody;
  /** The context of each call of a storage. */
  context: RequestContext;
  /** The form of objects in the response. */
  representation: Representation;
  /** The status that the client receives if the request failed. */
  failure: Status;
}

const MAX_WARNINGS = 20;
const MAX_WARNING_LENGTH = 512;

/**
 * One HTTP request during its processing by the filters and its handler. `found` contains the results so far; the properties of the
 * same name are for code that runs after the filter that sets them.
 */
export class ApiRequest {
  readonly incoming: IncomingMessage;
  readonly response: ServerResponse;
  /** Names the request in the log, in the audit log and to the client. */
  readonly id: string;
  /** Milliseconds since the epoch. */
  readonly startedAtMs: number;
  /** Aborts when the client has disconnected or the time of the request is up. */
  readonly aborted = new AbortController();
  /** Values of `Warning` headers. */
  readonly warnings: string[] = [];
  readonly found: Partial<RequestState> = {};
  /** True if nothing is stored, according to the URL or the body of a delete. */
  isDryRun = false;
  /** The name of the object that the request is about, where only the body has it. */
  objectName = '';

  constructor(incoming: IncomingMessage, response: ServerResponse, id: string, startedAtMs: number) {
    this.incoming = incoming;
    this.response = response;
    this.id = id;
    this.startedAtMs = startedAtMs;
  }

  get info(): RequestInfo {
    return this.#known('info');
  }

  get query(): URLSearchParams {
    return this.#known('query');
  }

  get sender(): User {
    return this.#known('sender');
  }

  get user(): User {
    return this.#known('user');
  }

  get openRequest(): OpenRequest {
    return this.#known('openRequest');
  }

  get resource(): ServedResource {
    return this.#known('resource');
  }

  get handler(): () => Promise<ApiResponse | StreamedResponse> {
    return this.#known('handler');
  }

  get body(): RequestBody {
    return this.#known('body');
  }

  get context(): RequestContext {
    return this.#known('context');
  }

  get representation(): Representation {
    return this.#known('representation');
  }

  /** The value of the header of this lower-case name; empty if there is none. */
  header(name: string): string {
    const value = this.incoming.headers[name];
    return typeof value === 'string' ? value : '';
  }

  /** Sends the client a warning, which kubectl prints. */
  warn(text: string): void {
    if (this.warnings.length < MAX_WARNINGS) this.warnings.push(warningHeader(text));
  }

  #known<Name extends keyof RequestState>(name: Name): RequestState[Name] {
    const value = this.found[name];
    if (value === undefined) throw new Error(`the ${name} of the request is read before the filter that sets it`);
    return value as RequestState[Name];
  }
}

/** A `Warning` header as Kubernetes writes it: `299 - "text"`. Characters that a header cannot carry become question marks. */
function warningHeader(text: string): string {
  const safe = text.slice(0, MAX_WARNING_LENGTH).replace(/[^\x20-\x7e]/g, '?');
  return `299 - "${safe.replace(/["\\]/g, '\\$&')}"`;
}
