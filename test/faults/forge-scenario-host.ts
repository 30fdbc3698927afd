import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { GiteaForge } from '../../src/forge/gitea/gitea-forge.ts';
import { GitHubForge } from '../../src/forge/github/github-forge.ts';
import { DEFAULT_NETWORK } from '../../src/git/network/git-network.ts';
import { APP } from '../support/github/github-server.ts';

/** The account of Sluice on a Gitea. */
export interface GiteaAccount {
  readonly username: string;
  readonly token: string;
}

export interface ScenarioHostOptions {
  /** Of the data, with the key of the GitHub App. */
  readonly folder: string;
  readonly api: string;
  readonly owner: string;
  readonly name: string;
  readonly publishOn: 'review' | 'merge' | 'approval';
  /** The user who decides. */
  readonly user: string;
  readonly token: string;
  /** Another process runs the scenario at the same time, whose user may be first. */
  readonly isBesideAnother?: boolean;
  /** Without it the host is a GitHub, where Sluice is an App. */
  readonly gitea?: GiteaAccount;
}

interface Pull {
  readonly number: number;
  readonly head: { readonly sha: string };
}

/** A host takes some seconds to read a branch, and to compute whether it can be merged; the checked server takes none. */
export function paceOf({ gitea }: Pick<ScenarioHostOptions, 'gitea'>): {
  readonly turns: number;
  readonly pauseMs: number;
} {
  return gitea === undefined ? { turns: 8, pauseMs: 0 } : { turns: 60, pauseMs: 500 };
}

/** The host as Sluice uses it. */
export function openForge(
  { folder, api, owner, name, gitea }: ScenarioHostOptions,
  mayMerge = false,
): GiteaForge | GitHubForge {
  const at = { api, owner, name, network: DEFAULT_NETWORK, tokenName: 'Secret default/forge' };
  if (gitea !== undefined) return new GiteaForge({ ...at, token: async () => gitea.token });
  const app = () => ({
    id: APP.id,
    privateKey: readFileSync(join(folder, 'app.pem'), 'utf8'),
    installation: APP.installation,
  });
  return new GitHubForge({ ...at, credentials: async () => ({ app: app() }), mayMerge });
}

/** What the user does, once. */
export async function decide(options: ScenarioHostOptions): Promise<void> {
  const { api, owner, name, token, publishOn, gitea, isBesideAnother = false } = options;
  const send = (method: string, path: string, body?: object): Promise<Response> =>
    fetch(`${api}/repos/${owner}/${name}${path}`, {
      ...{ method, headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' } },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  const call = async (method: string, path: string, body?: object): Promise<unknown> => {
    const response = await send(method, path, body);
    const isDone = isBesideAnother && method === 'PUT' && [405, 409].includes(response.status);
    if (!response.ok && !isDone) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
    return response.json();
  };
  // It is approved through Sluice.
  if (publishOn === 'approval') return;
  const [pull] = (await call('GET', '/pulls?state=open')) as Pull[];
  if (pull === undefined) return;
  const path = `/pulls/${pull.number}`;
  if (publishOn === 'merge') {
    if (gitea === undefined) return void (await call('PUT', `${path}/merge`, { sha: pull.head.sha }));
    const response = await send('POST', `${path}/merge`, { Do: 'merge', head_commit_id: pull.head.sha });
    const text = await response.text();
    const isDone = isBesideAnother && [404, 405, 409].includes(response.status);
    // It has not computed yet whether there is a conflict: the user presses the button again.
    if (!response.ok && !isDone && !/try again later/i.test(text))
      throw new Error(`${path}/merge: ${response.status} ${text}`);
  } else if (((await call('GET', `${path}/reviews`)) as unknown[]).length === 0) {
    // Hosts record times in seconds, and polls are seconds apart: two changes of one second look like one only here.
    await delay(1000 - (Date.now() % 1000));
    const event = gitea === undefined ? 'APPROVE' : 'APPROVED';
    await call('POST', `${path}/reviews`, { event, body: 'fine' });
  }
}
