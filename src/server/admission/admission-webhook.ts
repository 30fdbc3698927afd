import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { yieldToEventLoop } from '../../foundation/concurrency/in-slices.ts';
import { Mutex } from '../../foundation/concurrency/mutex.ts';
import { untilEnded } from '../../foundation/concurrency/until-ended.ts';
import { isSluiceError, SluiceError } from '../../foundation/sluice-error.ts';
import type { Clock } from '../../foundation/time/clock.ts';
import { measurement } from '../../foundation/time/measurement.ts';
import type { HostRules } from '../../git/network/host-rules.ts';
import { reportAuthenticated } from '../authentication/authenticated-requests.ts';
import type { Authenticator } from '../authentication/authenticator.ts';
import { ANONYMOUS_USER, UNAUTHENTICATED_GROUP } from '../authentication/user.ts';
import type { Authorizer } from '../authorization/authorizer.ts';
import { requireAllowed } from '../authorization/require-allowed.ts';
import type { Admission, PlannedWrite } from '../handlers/handler.ts';
import { type ApiResponse, jsonResponse } from '../http/answer.ts';
import { parseMediaType } from '../http/media-type.ts';
import { JSON_TYPE, textOf, unsupportedType } from '../http/request-body.ts';
import { methodNotAllowed } from '../http/request-errors.ts';
import { failureStatus, type Status } from '../http/status.ts';
import type { PathHandler } from '../request/path-handler.ts';
import { ArrivingBodies } from '../webhooks/arriving-bodies.ts';
import { readThrough } from '../webhooks/read-through.ts';
import { type AdmissionRequest, admissionResponse, readAdmissionReview } from './admission-review.ts';
import type { PolicyGates } from './check-delivery-target.ts';
import { checkSchema } from './check-schema.ts';
import type { PolicyIssuers } from './check-wave-target.ts';
import { OpenReviews } from './open-reviews.ts';
import { restrictToOwnRights } from './restrict-to-own-rights.ts';
import { reviewedWrite } from './reviewed-write.ts';

export interface AdmissionWebhookOptions {
  /** Authenticates the caller, which is a kube-apiserver; without credentials it is `system:anonymous`. */
  readonly authenticator: Authenticator;
  /**
   * Decides whether the caller may post reviews, and what the user of a review may do. It must have limits of its own, since callers without
   * credentials can use them up.
   */
  readonly authorizer: Authorizer;
  /** The Git hosts that the operator permits. */
  readonly hosts: HostRules;
  /** Read at the time of the review. */
  readonly policyGates: PolicyGates;
  readonly policyIssuers: PolicyIssuers;
  readonly clock: Clock;
  /** Called with failures of the server itself. */
  readonly onError: (error: unknown, where: string) => void;
}

/** A request for a review, when it begins (without a code) and when it ends. */
export const admissionReviews = measurement<{ readonly code?: number; readonly milliseconds: number }>(
  'sluice:admission-review',
);

export const ADMISSION_PATH = '/admission/validate';

/** A review has an object of at most 1.5 MiB, the limit of etcd, twice. */
const MAX_REVIEW_BYTES = 4 * 1024 * 1024;
/** Maximum memory of all reviews that arrive. */
const MAX_ARRIVING_BYTES = 64 * 1024 * 1024;
const BODY_TIMEOUT_MS = 10_000;
/** The default of `timeoutSeconds` in a ValidatingWebhookConfiguration, and its maximum. */
const DEFAULT_TIMEOUT_SECONDS = 10;
const MAX_TIMEOUT_SECONDS = 30;
/** Left of the timeout of the caller, so that the response with the cause arrives in time. */
const RESPONSE_MARGIN_MS = 500;

/**
 * Serves `POST /admission/validate`: reviews for a kube-apiserver whether a write of an object that Sluice reads may be stored. The rules are those
 * of the embedded server. A write of another kind is admitted, and nothing is changed, so that dry runs need no distinction. A rule that cannot
 * be decided refuses the write, whatever the failure policy of the webhook.
 *
 * The caller must be allowed to `post` this path, since a response discloses what the user of the review may do.
 */
export class AdmissionWebhook {
  readonly #options: AdmissionWebhookOptions;
  readonly #restrict: Admission;
  readonly #open: OpenReviews;
  readonly #turns = new Mutex();
  readonly #bodies = new ArrivingBodies(MAX_ARRIVING_BYTES);

  constructor(options: AdmissionWebhookOptions) {
    this.#options = options;
    this.#open = new OpenReviews(options.clock);
    this.#restrict = restrictToOwnRights(options.authorizer, options.hosts, options.policyGates, options.policyIssuers);
  }

  readonly handle: PathHandler = async ({ path, query, request }) => {
    if (path !== ADMISSION_PATH) return undefined;
    const start = performance.now();
    admissionReviews.publish({ milliseconds: 0 });
    let code = 200;
    try {
      return await this.#serve(query, request);
    } catch (error) {
      code = failureStatus(error, undefined, '').code;
      throw error;
    } finally {
      admissionReviews.publish({ code, milliseconds: performance.now() - start });
    }
  };

  async #serve(query: URLSearchParams, request: IncomingMessage): Promise<ApiResponse> {
    if (request.method !== 'POST') throw methodNotAllowed(['POST']);
    const open = this.#open.open(request);
    try {
      await this.#authorizeCaller(request);
      const text = await this.#readText(request);
      open.decide(text.length);
      // Reading one may take a tenth of a second: timers and other requests run between two of them.
      await this.#turns.run(yieldToEventLoop);
      return await this.#review(readAdmissionReview(text), timeoutMsOf(query) - RESPONSE_MARGIN_MS);
    } finally {
      open.close();
    }
  }

  async #review(review: AdmissionRequest, timeoutMs: number): Promise<ApiResponse> {
    const end = new AbortController();
    const cancel = this.#options.clock.schedule(timeoutMs, () => end.abort());
    try {
      return await this.#decide(review, end.signal);
    } finally {
      cancel();
    }
  }

  async #authorizeCaller(request: IncomingMessage): Promise<void> {
    const { authenticator, authorizer } = this.#options;
    const known = await authenticator.authenticate(request);
    const user = known ?? { name: ANONYMOUS_USER, groups: [UNAUTHENTICATED_GROUP] };
    const nothing = { group: '', version: '', resource: '', subResource: '', namespace: '', name: '' };
    const attributes = { ...nothing, user, verb: 'post', isResource: false, path: ADMISSION_PATH };
    try {
      await requireAllowed(authorizer, attributes);
    } catch (error) {
      if (known !== undefined || !isSluiceError(error, 'Refused')) throw error;
      throw new SluiceError('Unauthenticated', 'Unauthorized', { cause: error });
    }
    if (known !== undefined) reportAuthenticated(request);
  }

  async #readText(request: IncomingMessage): Promise<string> {
    const { headers } = request;
    if (parseMediaType(headers['content-type'] ?? JSON_TYPE).type !== JSON_TYPE) throw unsupportedType([JSON_TYPE]);
    if ((headers['content-encoding'] ?? 'identity') !== 'identity')
      throw new SluiceError('UnsupportedMediaType', 'a compressed AdmissionReview is not read; send it as it is');
    const { clock } = this.#options;
    const limits = { what: 'an AdmissionReview', maxBytes: MAX_REVIEW_BYTES, timeoutMs: BODY_TIMEOUT_MS, clock };
    const body = this.#bodies.begin(request, MAX_REVIEW_BYTES);
    try {
      await readThrough(request, limits, (chunk) => body.append(chunk));
      return textOf(body.end() ?? Buffer.alloc(0));
    } finally {
      body.end();
    }
  }

  async #decide(review: AdmissionRequest, signal: AbortSignal): Promise<ApiResponse> {
    let write: PlannedWrite | undefined;
    let refusal: Status | undefined;
    try {
      write = reviewedWrite(review);
      if (write !== undefined) await this.#check(write, signal);
    } catch (error) {
      refusal = this.#refusal(error, review, write);
    }
    return jsonResponse(200, admissionResponse(review.uid, refusal));
  }

  async #check(write: PlannedWrite, signal: AbortSignal): Promise<void> {
    // A kube-apiserver knows the kinds of Kubernetes itself.
    if (write.kind.group !== '') checkSchema(write);
    await untilEnded(signal, () => this.#restrict(write));
  }

  #refusal(error: unknown, { uid }: AdmissionRequest, write: PlannedWrite | undefined): Status {
    const reference = randomUUID();
    const kind = write?.kind;
    const name = write?.object.metadata.name || write?.object.metadata.generateName || '';
    const subject = kind && { group: kind.group, resource: kind.plural, kind: kind.kind, name };
    const status = failureStatus(error, subject, reference);
    if (status.code >= 500) this.#options.onError(error, `admission review ${JSON.stringify(uid)}, ${reference}`);
    return status;
  }
}

/** A kube-apiserver sends the timeout of the webhook, such as `10s`. */
function timeoutMsOf(query: URLSearchParams): number {
  const seconds = Number(/^(\d{1,3})s$/.exec(query.get('timeout') ?? '')?.[1] ?? DEFAULT_TIMEOUT_SECONDS);
  return Math.min(Math.max(seconds, 1), MAX_TIMEOUT_SECONDS) * 1000;
}
