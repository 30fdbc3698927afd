import { createHmac, randomUUID } from 'node:crypto';
import { createRequire } from 'node:module';
import type { GitHubRepository } from './github-repository.ts';
import type { GitHubRequest } from './github-server.ts';

type Json = Readonly<Record<string, unknown>>;

/** A payload that GitHub documents, as far as it is read here. */
export interface DocumentedPayload extends Json {
  readonly action?: string;
  readonly ref?: string;
  readonly repository?: Json & { readonly html_url: string; readonly clone_url: string };
  readonly installation?: { readonly account?: { readonly html_url: string } };
  readonly pull_request?: Json & { readonly head: Json; readonly base: Json };
  readonly issue?: Json & { readonly number: number; readonly pull_request?: object };
  readonly comment?: Json;
  readonly check_run?: Json & { readonly head_sha: string };
  readonly check_suite?: Json & { readonly head_sha: string };
}

const require = createRequire(import.meta.url);
const all = require('@octokit/webhooks-examples') as readonly {
  readonly name: string;
  readonly examples: readonly DocumentedPayload[];
}[];

/** The payloads that GitHub documents for an event. */
export function documentedPayloads(event: string): readonly DocumentedPayload[] {
  return all.find(({ name }) => name === event)?.examples ?? [];
}

/** Posts a payload as GitHub does. */
export function postSigned(url: string, secret: string, event: string, payload: unknown): Promise<Response> {
  const body = JSON.stringify(payload);
  const signature = `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`;
  const headers = {
    ...{ 'content-type': 'application/json', 'x-github-event': event, 'x-github-delivery': randomUUID() },
    'x-hub-signature-256': signature,
  };
  return fetch(url, { method: 'POST', headers, body });
}

const PATH = /^\/api\/v3\/repos\/(?<owner>[^/]+)\/(?<name>[^/?]+)(?<path>[^?]*)/;
/** Webhooks for requests that have an effect: name and action of the event. */
const EVENTS: readonly (readonly [RegExp, string, string])[] = [
  [/^POST \/pulls$/, 'pull_request', 'opened'],
  [/^PATCH \/(pulls|issues)\/\d+$/, 'pull_request', 'edited'],
  [/^POST \/issues\/\d+\/labels$/, 'pull_request', 'labeled'],
  [/^POST \/pulls\/\d+\/requested_reviewers$/, 'pull_request', 'review_requested'],
  [/^POST \/pulls\/\d+\/reviews$/, 'pull_request_review', 'submitted'],
  [/^PUT \/pulls\/\d+\/merge$/, 'pull_request', 'closed'],
  [/^POST \/issues\/\d+\/comments$/, 'issue_comment', 'created'],
  [/^POST \/check-runs$/, 'check_run', 'created'],
  [/^PATCH \/check-runs\/\d+$/, 'check_run', 'completed'],
];

interface WebhookOptions {
  readonly repository: GitHubRepository;
  /** Address of the page of the repository. */
  readonly page: string;
  /** Where they are sent. */
  readonly url: string;
  readonly secret: string;
  /** Is called before each is sent; `payload` must not be changed. */
  readonly onSend?: (event: string, payload: DocumentedPayload) => void;
  /** Is called with each response; undefined if there was none. */
  readonly onResponse?: (status: number | undefined) => void;
}

/** Sends webhooks about one repository, as GitHub does: payloads that it documents, with the state of the repository in them, signed. */
export class GitHubWebhooks {
  readonly #options: WebhookOptions;

  constructor(options: WebhookOptions) {
    this.#options = options;
  }

  /** Reports what a request has changed, if anything. */
  report({ method, url, status }: GitHubRequest): void {
    const { repository } = this.#options;
    const { owner, name, path = '' } = PATH.exec(url)?.groups ?? {};
    if (method === 'GET' || status >= 300 || owner !== repository.owner || name !== repository.name) return;
    const [, event, action] = EVENTS.find(([pattern]) => pattern.test(`${method} ${path}`)) ?? [];
    const number = Number(/^\/(?:pulls|issues)\/(\d+)/.exec(path)?.[1] ?? repository.pulls.length);
    if (event !== undefined) this.#send(event, action, number);
  }

  /** Reports that a ref was changed. */
  reportPush(ref: string): void {
    this.#send('push', undefined, undefined, { ref });
  }

  #send(event: string, action: string | undefined, number: number | undefined, more: Json = {}): void {
    const { url, secret, onSend, onResponse } = this.#options;
    const examples = documentedPayloads(event);
    const isWanted = (one: DocumentedPayload) => one.action === action;
    // The first comments lack fields that were added later.
    const found = event === 'issue_comment' ? examples.findLast(isWanted) : examples.find(isWanted);
    const example = found ?? examples[0] ?? {};
    const payload = {
      ...{ ...example, repository: { ...example.repository, ...this.#repository() } },
      ...(action === undefined ? {} : { action }),
      ...(action === 'edited' ? { changes: {} } : {}),
      ...(example.pull_request === undefined ? {} : { pull_request: this.#pull(example.pull_request, number) }),
      ...(example.issue === undefined
        ? {}
        : { issue: { ...example.issue, number, pull_request: this.#addresses(number) } }),
      ...more,
      // Messages with equal bodies count once.
      delivery: randomUUID(),
    } as unknown as DocumentedPayload;
    onSend?.(event, payload);
    // The receiver may have ended.
    postSigned(url, secret, event, payload).then(
      async (response) => {
        await response.arrayBuffer();
        onResponse?.(response.status);
      },
      () => onResponse?.(undefined),
    );
  }

  /** The documented payloads are older than their last description. */
  #repository(): Json {
    const { repository, page } = this.#options;
    const { id, owner, name } = repository;
    const added = {
      ...{ has_discussions: false, topics: [], visibility: 'public', is_template: false, allow_forking: true },
      web_commit_signoff_required: false,
    };
    return { id, name, full_name: `${owner}/${name}`, html_url: page, ...added };
  }

  /** By which an issue is a pull request. */
  #addresses(number: number | undefined): Json {
    const url = `${this.#options.page}/pull/${number}`;
    return { url, html_url: url, diff_url: `${url}.diff`, patch_url: `${url}.patch` };
  }

  #pull(example: NonNullable<DocumentedPayload['pull_request']>, number: number | undefined): Json {
    const pull = this.#options.repository.pulls.find((one) => one.number === number);
    const side = (side: 'head' | 'base', ref: string | undefined, sha: string | undefined) => ({
      ...example[side],
      ...{ ref, sha: sha ?? example[side].sha },
      repo: { ...(example[side].repo as Json), ...this.#repository() },
    });
    return {
      ...{ auto_merge: null, active_lock_reason: null, draft: false },
      ...example,
      ...{ number, updated_at: pull?.updatedAt, state: pull?.closedAt === undefined ? 'open' : 'closed' },
      ...{ head: side('head', pull?.head.branch, pull?.head.commit), base: side('base', pull?.base, undefined) },
    };
  }
}
