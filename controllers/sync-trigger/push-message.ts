import { createHmac } from 'node:crypto';
import { readRemoteUrl } from '../../src/git/network/remote-url.ts';

const NO_COMMIT = '0'.repeat(40);

export interface Push {
  readonly repo: string;
  readonly branch: string;
  readonly before: string | undefined;
  readonly after: string;
}

export interface PushMessage {
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * The message of a push as GitHub sends it, which Argo CD's /api/webhook takes, with the signatures of GitHub and of Flux's Receiver of the
 * type generic-hmac, which does not read the body.
 */
export function pushMessage(
  { repo, branch, before = NO_COMMIT, after }: Push,
  secret: string | undefined,
): PushMessage {
  const url = webAddress(repo);
  const body = JSON.stringify({
    ...{ ref: `refs/heads/${branch}`, before, after, created: before === NO_COMMIT, deleted: false, forced: false },
    // Argo CD compares `html_url` with the addresses of its applications, and refreshes those of the default branch for HEAD too.
    repository: { html_url: url, clone_url: `${url}.git`, default_branch: branch },
    // Without names of files every application of the repository is refreshed.
    commits: [],
  });
  const signature =
    secret === undefined ? undefined : `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`;
  return {
    body,
    headers: {
      'x-github-event': 'push',
      ...(signature === undefined ? {} : { 'x-hub-signature-256': signature, 'x-signature': signature }),
    },
  };
}

/** The address of a repository in a browser: what engines compare, whatever the protocol. */
function webAddress(repo: string): string {
  const { endpoint } = readRemoteUrl(repo);
  const url = endpoint === undefined ? null : URL.parse(endpoint.url);
  if (url === null) return repo;
  const origin = url.protocol === 'ssh:' ? `https://${url.hostname}` : url.origin;
  return `${origin}${url.pathname.replace(/\/+$/, '').replace(/\.git$/, '')}`;
}
