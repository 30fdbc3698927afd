import type { SyncRequests } from '../../../controllers/repository/sync-requests.ts';
import type { ObjectReader } from '../../controller/object-reader.ts';
import type { ReviewPolicy } from '../../package/model/policy/review-policy.ts';
import type { DeliveryTarget } from '../../resource/kinds/sluice/delivery/delivery-target.ts';
import { type KubernetesObject, keyOf, type ObjectKey, type Stored } from '../../resource/object/object.ts';
import { placeOf } from '../../server/webhooks/host/host-event.ts';
import type { AppWebhookOptions, WebhookOptions } from '../../server/webhooks/webhook-endpoint.ts';
import { addressKey, BY_PLACE, placeKey } from '../policies/host-places.ts';
import type { ObjectReaders } from '../policies/object-readers.ts';
import { targetsOf } from './reported-targets.ts';

type Readers = Pick<ObjectReaders, 'policies' | 'repositories' | 'targets'>;

/** What genuine messages wake: who reads a repository and its pull requests, and those targets with pull requests in it that they are about. */
export function webhookReceivers(
  readers: Readers,
  { requests, targetRequests }: { readonly requests: SyncRequests; readonly targetRequests: SyncRequests },
): Required<Pick<WebhookOptions, 'onMessage' | 'onTarget' | 'apps'>> {
  return {
    onMessage: (repository, scope, event) => {
      const isCheckReport = event?.isCheckReport === true && scope === undefined;
      // Sluice writes the most of them itself.
      if (isCheckReport && event.isOwnCheck) return;
      if (event !== undefined)
        for (const target of targetsOf(event, targetsIn(readers, repository))) targetRequests.wake(target);
      if (event?.checked !== undefined) requests.addCheck(repository, event.checked);
      if (isCheckReport) return;
      if (event?.written !== undefined) requests.addWritten(repository, event.written);
      if (event?.pull !== undefined) requests.addReview(repository, { pull: event.pull });
      if (event?.hint !== undefined) requests.addReview(repository, event.hint);
      requests.add(repository, scope);
    },
    onTarget: (target) => targetRequests.wake(target),
    apps: appWebhooks(readers),
  };
}

/**
 * What the webhook of a GitHub App reports on: repositories of the namespace of its Secret, which a policy of that namespace names for its
 * reviews, and targets there that name it for their deliveries, at the host and path that the message names. A message is never about an object of
 * another namespace.
 */
export function appWebhooks({ policies, repositories, targets }: Readers): AppWebhookOptions {
  const isReviewed = ({ namespace = '', name }: ObjectKey) =>
    policies.listIn(namespace).some(({ spec }) => isForge(spec.review?.forge, name));
  const isDelivered = ({ namespace = '', name }: ObjectKey) =>
    targets.listIn(namespace).some(({ spec }) => isForge(spec.pullRequest?.forge, name));
  return {
    isUsed: (secret) => isReviewed(secret) || isDelivered(secret),
    repositories: (secret, event) =>
      isReviewed(secret) ? foundAt(repositories, secret, placeOf(event)).map(keyOf) : [],
    targets: (secret, event) => {
      const delivered = foundAt(targets, secret, placeOf(event)).filter(({ spec }) =>
        isForge(spec.pullRequest?.forge, secret.name),
      );
      // An event of an installation: none of its repositories can be read any more, or again.
      return event.repository === undefined ? delivered.map(keyOf) : targetsOf(event, delivered);
    },
  };
}

/** Targets that deliver to a repository by pull requests, in its namespace: its own webhook reports on them. */
export function targetsIn(
  { repositories, targets }: Pick<ObjectReaders, 'repositories' | 'targets'>,
  repository: ObjectKey,
): Stored<DeliveryTarget>[] {
  const address = repositories.get(repository)?.spec.git?.repo;
  if (address === undefined) return [];
  return targets.byIndex(BY_PLACE, addressKey(repository.namespace, address));
}

function foundAt<T extends KubernetesObject>(
  reader: Pick<ObjectReader<T>, 'byIndex'>,
  { namespace }: ObjectKey,
  place: string | undefined,
): Stored<T>[] {
  return place === undefined ? [] : reader.byIndex(BY_PLACE, placeKey(namespace, place));
}

function isForge(forge: ReviewPolicy['forge'] | undefined, secret: string): boolean {
  return forge?.provider === 'github' && forge.secretRef.name === secret;
}
