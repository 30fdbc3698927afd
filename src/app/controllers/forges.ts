import { secretValue } from '../../../controllers/notification/secret-value.ts';
import type { OpenForge } from '../../../controllers/pull-request/opened-repositories.ts';
import { GiteaForge } from '../../forge/gitea/gitea-forge.ts';
import { GitHubForge } from '../../forge/github/github-forge.ts';
import { ForgeBudgets } from '../../forge/http/forge-budgets.ts';
import { SluiceError } from '../../foundation/sluice-error.ts';
import type { Clock } from '../../foundation/time/clock.ts';
import type { GitNetwork } from '../../git/network/git-network.ts';
import { readRemoteUrl } from '../../git/network/remote-url.ts';
import type { Client } from '../../resource/client/client.ts';
import { githubCredentials } from './github-credentials.ts';

export interface ForgesOptions {
  /** Reads Secrets. */
  readonly client: Client;
  /** Hosts that may be connected to. */
  readonly network: GitNetwork;
  readonly clock: Clock;
}

/** Opens repositories on the hosts that policies name, with the credentials of their Secrets. */
export function openForges({ client, network, clock }: ForgesOptions): OpenForge {
  const github = ForgeBudgets.forGitHub(clock);
  const gitea = new ForgeBudgets(clock);
  return ({ policy, forge: { provider, api, secretRef } }, namespace, address) => {
    const options = {
      ...repositoryAt(address, api, policy),
      ...{ api, network },
      tokenName: `Secret ${namespace}/${secretRef.name}`,
    };
    const use = `which spec.review.forge.secretRef of policy ${policy} refers to`;
    switch (provider) {
      case 'github':
        return new GitHubForge({
          ...{ ...options, budgets: github },
          credentials: (signal) => githubCredentials(client, namespace, secretRef, use, signal),
        });
      case 'gitea':
      case 'forgejo':
        return new GiteaForge({
          ...{ ...options, budgets: gitea },
          token: (signal) => secretValue(client, namespace, secretRef, use, signal),
        });
    }
  };
}

/**
 * Owner and name of a repository on a host. Its address has to be on the host of the API: users who may register repositories must not decide
 * which reviews of which other host count.
 */
function repositoryAt(address: string, api: string, policy: string): { readonly owner: string; readonly name: string } {
  const { endpoint } = readRemoteUrl(address);
  const url = endpoint === undefined ? null : URL.parse(endpoint.url);
  const host = gitHostOf(api);
  if (url === null || url.hostname !== host)
    throw new SluiceError(
      'InvalidInput',
      `the repository is not on ${host}, where policy ${policy} reviews it (spec.review.forge.api); change the selector of the policy, or its address of the API`,
    );
  // A host can be below a path.
  const parts = url.pathname
    .replace(/\/+$/, '')
    .replace(/\.git$/, '')
    .split('/');
  const [name, owner] = [parts.pop(), parts.pop()];
  if (!name || !owner)
    throw new SluiceError('InvalidInput', `the address of the repository does not end with <owner>/<name>`);
  return { owner, name };
}

/** The host of the repositories of an API: GitHub's own services have one of its own for that, GitHub Enterprise Server has not. */
function gitHostOf(api: string): string {
  const { hostname } = new URL(api);
  return /^api\.(github\.com|[^.]+\.ghe\.com)$/.exec(hostname)?.[1] ?? hostname;
}
