import type { OpenTargetForge } from '../../../controllers/delivery/pull-request/pull-deliveries.ts';
import { secretValue } from '../../../controllers/notification/secret-value.ts';
import type { OpenForge } from '../../../controllers/pull-request/opened-repositories.ts';
import type { Forge } from '../../forge/forge.ts';
import { GiteaForge } from '../../forge/gitea/gitea-forge.ts';
import { GITHUB_CONTENT } from '../../forge/github/content-requests.ts';
import { GitHubForge } from '../../forge/github/github-forge.ts';
import { ForgeBudgets } from '../../forge/http/forge-budgets.ts';
import { SluiceError } from '../../foundation/sluice-error.ts';
import type { Clock } from '../../foundation/time/clock.ts';
import type { GitNetwork } from '../../git/network/git-network.ts';
import type { ReviewPolicy } from '../../package/model/policy/review-policy.ts';
import type { Client } from '../../resource/client/client.ts';
import { DEFAULT_NAMESPACE } from '../../resource/object/object.ts';
import { expectPermittedApi, providerProblem, repositoryAt } from './forge-repository.ts';
import { githubCredentials } from './github-credentials.ts';

export interface ForgesOptions {
  /** Reads Secrets. */
  readonly client: Client;
  /** Hosts that may be connected to. */
  readonly network: GitNetwork;
  readonly clock: Clock;
}

export interface Forges {
  readonly forReview: OpenForge;
  readonly forTarget: OpenTargetForge;
}

/** A repository, and the object that says on which host it is. */
interface Place {
  readonly forge: ReviewPolicy['forge'];
  readonly namespace: string;
  /** Address of the repository. */
  readonly address: string;
  /** The field and its object, for messages: `spec.review.forge of policy x`. */
  readonly field: string;
  readonly mayMerge: boolean;
  readonly usesTeams?: boolean;
}

/** Opens repositories on the hosts that policies and targets name, with the credentials of their Secrets. */
export function openForges({ client, network, clock }: ForgesOptions): Forges {
  const github = new ForgeBudgets(clock, GITHUB_CONTENT);
  const gitea = new ForgeBudgets(clock);
  const open = ({
    forge: { provider, api, secretRef },
    namespace,
    address,
    field,
    mayMerge,
    usesTeams = false,
  }: Place): Forge => {
    const at = repositoryAt(address, api, field);
    const problem = providerProblem(provider, api, field);
    if (problem !== undefined) throw new SluiceError('InvalidInput', problem);
    expectPermittedApi(api, field, network.hosts);
    const options = {
      ...at,
      ...{ api, network },
      tokenName: `Secret ${namespace}/${secretRef.name}`,
    };
    const use = `which ${field} refers to`;
    switch (provider) {
      case 'github':
        return new GitHubForge({
          ...{ ...options, budgets: github, mayMerge, usesTeams },
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
  return {
    forReview: ({ policy, forge, teams = [] }, namespace, address, mayMerge = false) =>
      open({
        forge,
        namespace,
        address,
        field: `spec.review.forge.secretRef of policy ${policy}`,
        mayMerge,
        usesTeams: teams.length > 0,
      }),
    forTarget: ({ metadata, spec }) => {
      const { name, namespace = DEFAULT_NAMESPACE } = metadata;
      const forge = spec.pullRequest?.forge;
      if (forge === undefined) throw new SluiceError('Internal', `target ${name} has no spec.pullRequest`);
      // Targets share what is opened, so that its messages name none of them.
      const field = 'spec.pullRequest.forge.secretRef';
      return open({
        forge,
        namespace,
        address: spec.git.repo,
        field,
        mayMerge: spec.pullRequest?.merge === 'automatic',
      });
    },
  };
}
