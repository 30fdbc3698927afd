import { secretValue } from '../../../controllers/notification/secret-value.ts';
import type { OpenForge } from '../../../controllers/pull-request/pull-request-controller.ts';
import { GiteaForge } from '../../forge/gitea/gitea-forge.ts';
import { SluiceError } from '../../foundation/sluice-error.ts';
import type { GitNetwork } from '../../git/network/git-network.ts';
import { readRemoteUrl } from '../../git/network/remote-url.ts';
import type { Client } from '../../resource/client/client.ts';

export interface ForgesOptions {
  /** Reads Secrets. */
  readonly client: Client;
  /** Hosts that may be connected to. */
  readonly network: GitNetwork;
}

/** Opens repositories on the hosts that policies name, with the tokens of their Secrets. */
export function openForges({ client, network }: ForgesOptions): OpenForge {
  return ({ policy, forge: { api, secretRef } }, namespace, address) =>
    new GiteaForge({
      ...repositoryAt(address, api, policy),
      ...{ api, network },
      tokenName: `Secret ${namespace}/${secretRef.name}`,
      token: (signal) =>
        secretValue(
          client,
          namespace,
          secretRef,
          `which spec.review.forge.secretRef of policy ${policy} refers to`,
          signal,
        ),
    });
}

/**
 * Owner and name of a repository on a host. Its address has to be on the host of the API: users who may register repositories must not decide
 * which reviews of which other host count.
 */
function repositoryAt(address: string, api: string, policy: string): { readonly owner: string; readonly name: string } {
  const { endpoint } = readRemoteUrl(address);
  const url = endpoint === undefined ? null : URL.parse(endpoint.url);
  const host = new URL(api).hostname;
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
