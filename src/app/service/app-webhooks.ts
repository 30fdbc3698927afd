import { comparableAddress } from '../../git/open/repository-address.ts';
import type { ReviewPolicy } from '../../package/model/policy/review-policy.ts';
import { keyOf, type ObjectKey } from '../../resource/object/object.ts';
import { isAbout } from '../../server/webhooks/host/host-event.ts';
import type { AppWebhookOptions } from '../../server/webhooks/webhook-endpoint.ts';
import type { ObjectReaders } from '../policies/object-readers.ts';

/**
 * What the webhook of a GitHub App reports on: repositories of the namespace of its Secret, which a policy of that namespace names for its
 * reviews, and targets there that name it for their deliveries, at the host and path that the message names. A message is never about an object of
 * another namespace.
 */
export function appWebhooks({
  policies,
  repositories,
  targets,
}: Pick<ObjectReaders, 'policies' | 'repositories' | 'targets'>): AppWebhookOptions {
  const isReviewed = ({ namespace = '', name }: ObjectKey) =>
    policies.listIn(namespace).some(({ spec }) => isForge(spec.review?.forge, name));
  const targetsOf = ({ namespace = '', name }: ObjectKey) =>
    targets.listIn(namespace).filter(({ spec }) => isForge(spec.pullRequest?.forge, name));
  return {
    isUsed: (secret) => isReviewed(secret) || targetsOf(secret).length > 0,
    repositories: (secret, event) =>
      isReviewed(secret)
        ? repositories
            .listIn(secret.namespace ?? '')
            .filter(({ spec }) => spec.git?.repo !== undefined && isAbout(event, spec.git.repo))
            .map(keyOf)
        : [],
    targets: (secret, event) =>
      targetsOf(secret)
        .filter(({ spec }) => isAbout(event, spec.git.repo))
        .map(keyOf),
  };
}

/** Targets that deliver to a repository by pull requests, in its namespace: its own webhook reports on them. */
export function targetsIn(
  { repositories, targets }: Pick<ObjectReaders, 'repositories' | 'targets'>,
  repository: ObjectKey,
): ObjectKey[] {
  const address = repositories.get(repository)?.spec.git?.repo;
  if (address === undefined) return [];
  const own = comparableAddress(address);
  return targets
    .listIn(repository.namespace ?? '')
    .filter(({ spec }) => spec.pullRequest !== undefined && comparableAddress(spec.git.repo) === own)
    .map(keyOf);
}

function isForge(forge: ReviewPolicy['forge'] | undefined, secret: string): boolean {
  return forge?.provider === 'github' && forge.secretRef.name === secret;
}
