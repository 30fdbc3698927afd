import { deliveryBranchName } from '../../../controllers/delivery/pull-request/delivery-branch.ts';
import { trimEndsOf } from '../../foundation/text/trim-characters.ts';
import type { DeliveryTarget } from '../../resource/kinds/sluice/delivery/delivery-target.ts';
import { DEFAULT_NAMESPACE, keyOf, type ObjectKey, type Stored } from '../../resource/object/object.ts';
import type { HostEvent } from '../../server/webhooks/host/host-event.ts';

/**
 * Which targets of a repository, that deliver to it by pull requests, a message is about: hundreds of them can share one repository, where each
 * delivery leads to several messages. It is that of a pull request or its branch, those whose directory a push to their branch changes, and that of a
 * commit which Sluice is to merge once its checks have succeeded. What a message does not name, they read now and then.
 */
export function targetsOf(
  { pull, push, checked }: Pick<HostEvent, 'pull' | 'push' | 'checked'>,
  targets: readonly Stored<DeliveryTarget>[],
): ObjectKey[] {
  const branch = push?.branch ?? pull?.head?.branch;
  const changed = push === undefined || push.paths.length === 0 ? undefined : foldersOf(push.paths);
  return targets.filter(isReported).map(keyOf);

  function isReported({ metadata: { namespace = DEFAULT_NAMESPACE, name }, spec, status }: Stored<DeliveryTarget>) {
    const { number, commit } = status?.pullRequest ?? {};
    if (branch !== undefined && branch === deliveryBranchName({ namespace, name })) return true;
    if (pull !== undefined && pull.number === number) return true;
    if (checked !== undefined && spec.pullRequest?.merge === 'automatic' && commit === checked) return true;
    return push?.branch === spec.git.branch && changed?.has(trimEndsOf(spec.git.directory, '/')) === true;
  }
}

/** All folders that have one of these files in them. The root has all. */
function foldersOf(paths: readonly string[]): ReadonlySet<string> {
  const folders = new Set(['']);
  for (const path of paths) {
    for (let end = path.lastIndexOf('/'); end > 0; end = path.lastIndexOf('/', end - 1)) {
      const folder = path.slice(0, end);
      if (folders.has(folder)) break;
      folders.add(folder);
    }
  }
  return folders;
}
