import {
  applicationKind,
  applicationSetKind,
  gitRepositoryKind,
  kustomizationKind,
} from '../../delivery/status/sources/engine-kinds.ts';
import { SluiceError } from '../../foundation/sluice-error.ts';
import { type DeliveryTarget, deliveryTargetKind } from '../../resource/kinds/sluice/delivery/delivery-target.ts';
import { engineNamespace } from '../../resource/kinds/sluice/delivery/engine-settings.ts';
import { sameValue } from '../../resource/object/same-value.ts';
import type { Authorizer } from '../authorization/authorizer.ts';
import { isAllowed, permission } from '../authorization/require-allowed.ts';
import type { PlannedWrite } from '../handlers/handler.ts';

type Spec = Partial<Pick<DeliveryTarget['spec'], 'engine' | 'git'>>;

/**
 * Checks targets whose engine is in the cluster of Sluice: Sluice reads and refreshes its objects with its own rights, and shows their
 * reports in the status of the target, so callers must have these rights on the objects themselves. With a kubeconfig, the rights are those of
 * the Secret, which callers must be allowed to read. An unchanged engine of the same folder is not checked again.
 */
export async function checkEngine({ user, kind, object, old }: PlannedWrite, authorizer: Authorizer): Promise<void> {
  if (kind.group !== deliveryTargetKind.group || kind.kind !== deliveryTargetKind.kind) return;
  const [before, after] = [old, object].map((one) => (one as { readonly spec?: Spec } | undefined)?.spec);
  const engine = after?.engine;
  const namespace = engine === undefined ? undefined : engineNamespace(engine);
  if (engine === undefined || namespace === undefined || engine.kubeconfigSecretRef !== undefined) return;
  if (sameValue(engine, before?.engine) && sameValue(placeOf(before), placeOf(after))) return;
  const [objects, refreshed] =
    engine.type === 'Flux'
      ? [kustomizationKind, [gitRepositoryKind]]
      : [applicationKind, [applicationKind, applicationSetKind]];
  const patched = engine.trigger?.type === 'Annotation' ? refreshed : [];
  const needed = [{ verb: 'list', of: objects }, ...patched.map((of) => ({ verb: 'patch', of }))];
  for (const { verb, of } of needed) {
    const { group, plural: resource } = of;
    if (await isAllowed(authorizer, permission(user, verb, { group, resource, namespace, name: '' }))) continue;
    const { name } = object.metadata;
    const why = `spec.engine has Sluice ${verb} ${resource}.${group} in namespace ${namespace} of its cluster, which User ${JSON.stringify(user.name)} may not do; name a Secret with a kubeconfig, or let a user with that right write this`;
    throw new SluiceError('Refused', `deliverytargets.sluice.dev ${JSON.stringify(name)} is forbidden: ${why}`, {
      details: { name, group: kind.group, kind: kind.plural },
    });
  }
}

/** What reports are compared with. */
function placeOf(spec: Spec | undefined): readonly unknown[] {
  const { repo, branch, directory } = spec?.git ?? {};
  return [repo, branch, directory].map((one) => one ?? null);
}
