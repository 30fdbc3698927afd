import type { PackagePolicy } from '../../resource/kinds/sluice/package-policy.ts';
import { keyOf, type ObjectKey } from '../../resource/object/object.ts';
import { isAbout } from '../../server/webhooks/host/host-event.ts';
import type { AppWebhookOptions } from '../../server/webhooks/webhook-endpoint.ts';
import type { ObjectReaders } from '../policies/object-readers.ts';

/**
 * Which repositories the webhook of a GitHub App reports on: those of the namespace of its Secret, which a policy of that namespace names for its
 * reviews, at the host and path that the message names. A message is never about a repository of another namespace.
 */
export function appWebhooks({
  policies,
  repositories,
}: Pick<ObjectReaders, 'policies' | 'repositories'>): AppWebhookOptions {
  const isUsed = ({ namespace = '', name }: ObjectKey) =>
    policies.listIn(namespace).some((policy) => uses(policy, name));
  return {
    isUsed,
    repositories: (secret, event) =>
      isUsed(secret)
        ? repositories
            .listIn(secret.namespace ?? '')
            .filter(({ spec }) => spec.git?.repo !== undefined && isAbout(event, spec.git.repo))
            .map(keyOf)
        : [],
  };
}

function uses({ spec }: PackagePolicy, secret: string): boolean {
  const forge = spec.review?.forge;
  return forge?.provider === 'github' && forge.secretRef.name === secret;
}
