import { createHash, randomBytes } from 'node:crypto';
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { SluiceError } from '../../foundation/sluice-error.ts';
import type { Clock } from '../../foundation/time/clock.ts';
import type { Client } from '../../resource/client/client.ts';
import { keyText, type ObjectKey } from '../../resource/object/object.ts';
import { type ApiResponse, textResponse } from '../http/answer.ts';
import { methodNotAllowed } from '../http/request-errors.ts';
import type { PathHandler } from '../request/path-handler.ts';
import { ArrivingBodies, type ArrivingBody } from './arriving-bodies.ts';
import { type HostEvent, hostEventIn } from './host/host-event.ts';
import { type HostPush, hostPushIn, pushFormatOf } from './host/host-push.ts';
import { readThrough } from './read-through.ts';
import { SecretReads } from './secret-reads.ts';
import type { SeenFile } from './seen/seen-file.ts';
import { SeenMessages } from './seen/seen-messages.ts';
import { REPLAY_WINDOW, SignatureCheck } from './signature-check.ts';
import { appAt, repositoryAt } from './webhook-path.ts';
import { appWebhookSecrets, webhookSecrets } from './webhook-secrets.ts';

/** The scope of a sync; see `PackageRepository.sync`. */
type HintedScope = 'branches' | 'everything';

const EVENT_HEADERS = ['x-github-event', 'x-gitea-event', 'x-forgejo-event', 'x-gogs-event', 'x-gitlab-event'];
/** Events that report refs. System hooks of GitLab report many events, including pushes. */
const EVENTS_OF_REFS: ReadonlySet<string> = new Set([
  ...['push', 'create', 'delete'],
  ...['Push Hook', 'Tag Push Hook', 'System Hook'],
]);

export interface AppWebhookOptions {
  /** True for a Secret that a policy names for its reviews, or a target for its deliveries, from memory. */
  readonly isUsed: (secret: ObjectKey) => boolean;
  /** The repositories that a message of this App may be about: those which it reviews, in the namespace of its Secret. From memory. */
  readonly repositories: (secret: ObjectKey, event: HostEvent) => readonly ObjectKey[];
  /** The same for targets that it delivers to by pull requests. */
  readonly targets: (secret: ObjectKey, event: HostEvent) => readonly ObjectKey[];
}

export interface WebhookOptions {
  /** Reads Repositories and Secrets. */
  readonly client: Client;
  readonly clock: Clock;
  /** True for a registered repository, from memory. Default: always true. */
  readonly isRegistered?: (repository: ObjectKey) => boolean;
  /**
   * Called for each authenticated message; without a scope if it names no refs, without an event if it is no JSON. Must be cheap however often
   * it is called.
   */
  readonly onMessage: (
    repository: ObjectKey,
    scope: HintedScope | undefined,
    event: Omit<HostEvent, 'repository' | 'owner'> | undefined,
  ) => void;
  /** Called for each authenticated message of an App about the repository of a delivery target. Must be as cheap. */
  readonly onTarget?: (target: ObjectKey) => void;
  /** Webhooks of GitHub Apps. Default: they are not served. */
  readonly apps?: AppWebhookOptions;
  /** Where messages that were seen outlast a restart. Default: nowhere. */
  readonly seenFile?: SeenFile;
  /** Called with each push to a branch whose pusher a genuine message names, before `onMessage`. Must not reject. */
  readonly onPush?: (repository: ObjectKey, push: HostPush) => Promise<void>;
  /** Called instead for a push whose message is longer than the bodies that are kept, so that its pusher is lost. Must not reject. */
  readonly onUnreadablePush?: (repository: ObjectKey, maxBytes: number) => Promise<void>;
  /** Maximum memory of all bodies that arrive, in bytes; default 64 MiB. */
  readonly maxArrivingBytes?: number;
}

/** The maximum that GitHub sends. A body is not stored while it is verified. */
const MAX_BODY_BYTES = 25 * 1024 * 1024;
/** A body up to this length is kept to read the name of the ref in it. */
const KEPT_BYTES = 1024 * 1024;
/** Milliseconds for a body to arrive; Git hosts have about the same timeout. */
const BODY_TIMEOUT_MS = 10_000;
/** Maximum memory of all bodies that arrive, in bytes. */
const MAX_ARRIVING_BYTES = 64 * 1024 * 1024;
const MAX_SEEN = 10_000;

/** The headers that each proof covers. The token of GitLab is the secret itself: only a sender who has it can write the headers beside it. */
const PROVEN_HEADERS: Readonly<Record<string, readonly string[]>> = {
  'webhook-signature': ['webhook-id', 'webhook-timestamp'],
  'x-sluice-signature': ['x-sluice-timestamp'],
  'x-gitlab-token': ['idempotency-key', 'x-gitlab-event-uuid'],
};

/**
 * Answers `POST /webhooks/git/<namespace>/<repository>`: a Git host reports a push, or a change of a pull request; and
 * `POST /webhooks/github-app/<namespace>/<secret>`: a GitHub App reports the same of the repositories that it reviews or delivers to. The sender needs no account, only the
 * secret of the webhook (see `SignatureCheck`). A message is a hint to read the repository: Sluice takes the content from
 * the repository itself. Only the pusher, and how a comment was written, cannot be read there, see `HostPush` and `HostEvent`. The response for a missing repository, a repository
 * without a webhook and a wrong signature is the same, Unauthenticated, and is sent only after the whole body has arrived. See `SecretReads`
 * for what senders without a secret may cost.
 */
export class WebhookEndpoint {
  readonly #options: WebhookOptions;
  readonly #bodies: ArrivingBodies;
  readonly #secrets: SecretReads;
  readonly #appSecrets: SecretReads;
  readonly #seen: SeenMessages;
  /** Replaces a missing secret, so that no signature is valid but each is checked. */
  readonly #placeholderSecret = randomBytes(32).toString('base64');

  constructor(options: WebhookOptions) {
    this.#options = options;
    this.#bodies = new ArrivingBodies(options.maxArrivingBytes ?? MAX_ARRIVING_BYTES);
    const { client, clock, isRegistered = () => true } = options;
    this.#secrets = new SecretReads({ clock, isRegistered, read: (repository) => webhookSecrets(client, repository) });
    const { isUsed: isRegisteredApp = () => false } = options.apps ?? {};
    this.#appSecrets = new SecretReads({
      ...{ clock, isRegistered: isRegisteredApp },
      // Other Secrets of the namespace are none of a sender's business.
      read: async (secret) => (isRegisteredApp(secret) ? await appWebhookSecrets(client, secret) : []),
    });
    // A signed time may lie as far ahead as behind.
    this.#seen = new SeenMessages({ clock, milliseconds: 2 * REPLAY_WINDOW, limit: MAX_SEEN, file: options.seenFile });
  }

  readonly handle: PathHandler = async ({ path, request }) => {
    const repository = repositoryAt(path);
    const app = this.#options.apps === undefined ? undefined : appAt(path);
    const target = repository ?? app;
    if (target === undefined) return undefined;
    if (request.method !== 'POST') throw methodNotAllowed(['POST']);
    const body = this.#bodies.begin(request, KEPT_BYTES);
    try {
      return await this.#receive(target, { isApp: repository === undefined, request, arriving: body });
    } finally {
      body.end();
    }
  };

  async #receive(target: ObjectKey, { isApp, request, arriving }: Arriving): Promise<ApiResponse> {
    const { clock } = this.#options;
    const { headers } = request;
    const sender = request.socket.remoteAddress ?? '';
    const reads = isApp ? this.#appSecrets : this.#secrets;
    const secrets = await reads.secretsFor(target, sender);
    const check = new SignatureCheck(headers, secrets.length === 0 ? [this.#placeholderSecret] : secrets, clock.now());
    const digest = createHash('sha256');
    const limits = { what: 'a webhook', maxBytes: MAX_BODY_BYTES, timeoutMs: BODY_TIMEOUT_MS, clock };
    await readThrough(request, limits, (chunk) => {
      check.update(chunk);
      digest.update(chunk);
      arriving.append(chunk);
    });
    const body = arriving.end();
    if (!check.isValid()) throw new SluiceError('Unauthenticated', 'Unauthorized');
    reads.refund(sender);
    const id = messageId(`${isApp ? 'app ' : ''}${keyText(target)}`, headers, digest.digest('base64'));
    if (!this.#seen.add(id)) return textResponse(202, 'text/plain; charset=utf-8', 'seen before\n');
    const event = hostEventIn(body);
    if (isApp) this.#reportOfApp(target, event, headers, body);
    else await this.#report(target, event, headers, body);
    return textResponse(202, 'text/plain; charset=utf-8', 'accepted\n');
  }

  /** A message of an App triggers reads; who pushed is for the webhook of the repository to report. */
  #reportOfApp(
    app: ObjectKey,
    event: HostEvent | undefined,
    headers: IncomingHttpHeaders,
    body: Buffer | undefined,
  ): void {
    const { apps, onMessage, onTarget } = this.#options;
    // Sluice sets most of the checks itself.
    if (event === undefined || event.isOwnCheck) return;
    const scope = syncHint(headers, body);
    for (const repository of apps?.repositories(app, event) ?? []) onMessage(repository, scope, event);
    for (const target of apps?.targets(app, event) ?? []) onTarget?.(target);
  }

  async #report(
    repository: ObjectKey,
    event: HostEvent | undefined,
    headers: IncomingHttpHeaders,
    body: Buffer | undefined,
  ): Promise<void> {
    const { onMessage, onPush, onUnreadablePush } = this.#options;
    if (body === undefined && pushFormatOf(headers) !== undefined) await onUnreadablePush?.(repository, KEPT_BYTES);
    const push = onPush === undefined ? undefined : hostPushIn(headers, body);
    if (push !== undefined) await onPush?.(repository, push);
    onMessage(repository, syncHint(headers, body), event);
  }
}

interface Arriving {
  readonly isApp: boolean;
  readonly request: IncomingMessage;
  readonly arriving: ArrivingBody;
}

/**
 * Identifies a message, so that a repetition has the same id. It contains signed values only: an attacker could replace the event and delivery
 * headers of a captured message. Without a signed time, messages with equal bodies therefore count once; polling finds a branch that
 * returned to an earlier commit while its message was remembered.
 */
function messageId(target: string, headers: IncomingHttpHeaders, bodyDigest: string): string {
  const proven = Object.entries(PROVEN_HEADERS).flatMap(([proof, names]) =>
    headers[proof] === undefined ? [] : names.map((name) => [name, String(headers[name] ?? '')]),
  );
  const parts = [target, bodyDigest, proven];
  return createHash('sha256').update(JSON.stringify(parts)).digest('base64');
}

/**
 * Returns the scope of the sync that an authenticated message requests: undefined for an event that changes no ref. `body` is
 * undefined if it was too long to buffer. The message only limits the scope: an unclear one requests a full sync.
 */
function syncHint(headers: IncomingHttpHeaders, body: Buffer | undefined): HintedScope | undefined {
  if (!reportsRefs(headers)) return undefined;
  const ref = refIn(body);
  // The other refs are tags; they are many, so Sluice reads them only if a message names them.
  return ref?.startsWith('refs/heads/') || ref?.startsWith('refs/sluice/') ? 'branches' : 'everything';
}

/** True if the event in the headers, if any, reports refs. */
function reportsRefs(headers: IncomingHttpHeaders): boolean {
  const event = EVENT_HEADERS.map((name) => headers[name]).find((value) => value !== undefined);
  return event === undefined || EVENTS_OF_REFS.has(String(event));
}

function refIn(body: Buffer | undefined): string | undefined {
  if (body === undefined) return undefined;
  try {
    const payload: unknown = JSON.parse(body.toString('utf8'));
    if (typeof payload !== 'object' || payload === null || !Object.hasOwn(payload, 'ref')) return undefined;
    const { ref } = payload as { readonly ref: unknown };
    return typeof ref === 'string' ? ref : undefined;
  } catch {
    // A form, or text of a script: the message only requests a sync.
    return undefined;
  }
}
