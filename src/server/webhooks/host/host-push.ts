import type { IncomingHttpHeaders } from 'node:http';
import { z } from 'zod';

/** The report of a Git host about one push to a branch. The operator of the Repository decides whether reports count. */
export interface HostPush {
  /** Kind of the host, such as `github`. */
  readonly provider: string;
  /** The account that pushed. */
  readonly user: string;
  /** Full name. */
  readonly ref: string;
  /** Commit of the branch before the push; undefined for a new branch. */
  readonly before: string | undefined;
  readonly after: string;
  /** Name of the repository at the host, such as `team/apps`; undefined if the sender gives none. */
  readonly repository: string | undefined;
}

const MAX_NAME_CHARACTERS = 256;

const name = z
  .string()
  .min(1)
  .max(MAX_NAME_CHARACTERS)
  .regex(/^[^\s\p{C}]+$/u);
const oid = z.string().regex(/^(?:[0-9a-f]{40}|[0-9a-f]{64})$/);
const update = z.object({ ref: z.string().max(1024).startsWith('refs/heads/'), before: oid, after: oid });
/** Gogs and the hosts that come from it have both, with the same value. */
const account = z
  .object({ login: name.optional(), username: name.optional() })
  .transform(({ login, username }) => login ?? username);

const github = update.extend({ sender: account, repository: z.object({ full_name: name }) });
const gitea = update.extend({ pusher: account, repository: z.object({ full_name: name }) });
const gitlab = update.extend({
  object_kind: z.literal('push'),
  user_username: name,
  project: z.object({ path_with_namespace: name }),
});
const custom = update.extend({ host_user: name });

/** The hosts whose messages report pushes: the header that names the event, the event of a push, and the signatures that the host sends. */
const HOSTS = [
  { provider: 'forgejo', header: 'x-forgejo-event', event: 'push', signatures: ['x-forgejo-signature'] },
  { provider: 'gitea', header: 'x-gitea-event', event: 'push', signatures: ['x-gitea-signature'] },
  { provider: 'gogs', header: 'x-gogs-event', event: 'push', signatures: ['x-gogs-signature'] },
  // No system hooks: they report pushes to all projects of the host.
  {
    ...{ provider: 'gitlab', header: 'x-gitlab-event', event: 'Push Hook' },
    signatures: ['x-gitlab-token', 'webhook-signature'],
  },
  { provider: 'github', header: 'x-github-event', event: 'push', signatures: ['x-hub-signature-256'] },
] as const;
/** Headers of a custom hook, which names no event. */
const CUSTOM_SIGNATURES = ['x-sluice-signature', 'webhook-signature'];

/**
 * Returns the format of the body of an authenticated message; undefined if it reports no push. Hosts that are compatible with another
 * one also send its headers: the specific header decides. The event header is not signed, so the format of a host counts only with the
 * signature that this host sends.
 */
export function pushFormatOf(headers: IncomingHttpHeaders): (typeof HOSTS)[number]['provider'] | 'own' | undefined {
  const isSigned = (signatures: readonly string[]) => signatures.some((name) => headers[name] !== undefined);
  const host = HOSTS.find(({ header }) => headers[header] !== undefined);
  if (host === undefined) return isSigned(CUSTOM_SIGNATURES) ? 'own' : undefined;
  return headers[host.header] === host.event && isSigned(host.signatures) ? host.provider : undefined;
}

/**
 * Returns the push that an authenticated message reports; undefined for every message that reports no push to a branch by a named
 * account.
 */
export function hostPushIn(headers: IncomingHttpHeaders, body: Buffer | undefined): HostPush | undefined {
  const provider = pushFormatOf(headers);
  const value = body === undefined || provider === undefined ? undefined : parseJson(body);
  if (provider === undefined || value === undefined) return undefined;
  if (provider === 'own') {
    const { data } = custom.safeParse(value);
    return data && pushOf(provider, data.host_user, data, undefined);
  }
  if (provider === 'gitlab') {
    const { data } = gitlab.safeParse(value);
    return data && pushOf(provider, data.user_username, data, data.project.path_with_namespace);
  }
  if (provider === 'github') {
    const { data } = github.safeParse(value);
    return data && pushOf(provider, data.sender, data, data.repository.full_name);
  }
  const { data } = gitea.safeParse(value);
  return data && pushOf(provider, data.pusher, data, data.repository.full_name);
}

function pushOf(
  provider: string,
  user: string | undefined,
  { ref, before, after }: z.infer<typeof update>,
  repository: string | undefined,
): HostPush | undefined {
  // A branch that was deleted.
  if (user === undefined || isZero(after)) return undefined;
  return {
    provider,
    user,
    ref,
    before: isZero(before) ? undefined : before,
    after,
    repository,
  };
}

function isZero(text: string): boolean {
  return /^0+$/.test(text);
}

function parseJson(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8'));
  } catch {
    // Not JSON, such as form data or the text of a script: it reports no push.
    return undefined;
  }
}
