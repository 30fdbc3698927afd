import type { IncomingHttpHeaders } from 'node:http';
import { z } from 'zod';

/** What a Git host reports about one push to a branch. Whether the report counts is for the operator of the Repository to say. */
export interface HostPush {
  /** Kind of the host, such as `github`. */
  readonly provider: string;
  /** The account that pushed. */
  readonly user: string;
  /** Full name. */
  readonly ref: string;
  /** Where the branch was; undefined for a new one. */
  readonly before: string | undefined;
  readonly after: string;
  /** What the host calls the repository, such as `team/apps`; undefined if the sender names none. */
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
const own = update.extend({ host_user: name });

/**
 * Who pushed, as the body of a genuine message reports it; undefined for every message that reports no push to a branch by a named
 * account. Hosts that are compatible with others send the headers of those too: the own one decides.
 */
export function hostPushIn(headers: IncomingHttpHeaders, body: Buffer | undefined): HostPush | undefined {
  const value = body === undefined ? undefined : parseJson(body);
  if (value === undefined) return undefined;
  for (const provider of ['forgejo', 'gitea', 'gogs'] as const) {
    const event = headers[`x-${provider}-event`];
    if (event === undefined) continue;
    const { data } = gitea.safeParse(value);
    if (event !== 'push' || data === undefined) return undefined;
    return pushOf(provider, data.pusher, data, data.repository.full_name);
  }
  if (headers['x-gitlab-event'] !== undefined) {
    const { data } = gitlab.safeParse(value);
    // A system hook speaks of all projects of the host.
    if (headers['x-gitlab-event'] !== 'Push Hook' || data === undefined) return undefined;
    return pushOf('gitlab', data.user_username, data, data.project.path_with_namespace);
  }
  if (headers['x-github-event'] !== undefined) {
    const { data } = github.safeParse(value);
    if (headers['x-github-event'] !== 'push' || data === undefined) return undefined;
    return pushOf('github', data.sender, data, data.repository.full_name);
  }
  const { data } = own.safeParse(value);
  return data === undefined ? undefined : pushOf('own', data.host_user, data, undefined);
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
    // A form, or words of a script: it reports no push.
    return undefined;
  }
}
