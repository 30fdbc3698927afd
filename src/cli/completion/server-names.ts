import { explainSchema } from '../../package/model/revision/revision-readings.ts';
import { packageRevisionKind } from '../../resource/kinds/porch/package-revision.ts';
import { packageVariantKind } from '../../resource/kinds/porch/package-variant.ts';
import { packageVariantSetKind } from '../../resource/kinds/porch/package-variant-set.ts';
import { repositoryKind } from '../../resource/kinds/porch/repository.ts';
import { deliveryTargetKind } from '../../resource/kinds/sluice/delivery/delivery-target.ts';
import { freezeKind } from '../../resource/kinds/sluice/freeze.ts';
import { packagePolicyKind } from '../../resource/kinds/sluice/package-policy.ts';
import { analysisRunKind } from '../../resource/kinds/sluice/wave/analysis-run.ts';
import { wavePlanKind } from '../../resource/kinds/sluice/wave/wave-plan.ts';
import type { KubernetesObject } from '../../resource/object/object.ts';
import type { Kind } from '../../resource/schema/kind.ts';
import type { Access } from '../access/access.ts';
import { openAccess } from '../access/open-access.ts';
import { readRevision } from '../access/read-revision.ts';
import type { PlaceOptions } from '../output/invocation.ts';
import type { FolderRequest, ObjectNames } from './folder-names.ts';

const MAX_NAMES = 1000;

const KINDS: Readonly<Record<ObjectNames | 'repositories', Kind<KubernetesObject>>> = {
  repositories: repositoryKind,
  targets: deliveryTargetKind,
  plans: wavePlanKind,
  freezes: freezeKind,
  policies: packagePolicyKind,
  'analysis runs': analysisRunKind,
  variants: packageVariantKind,
  'variant sets': packageVariantSetKind,
};

/** Names that a server has. */
export async function serverNames(
  { kind, current, subject }: Omit<FolderRequest, 'namespace'>,
  options: PlaceOptions,
  environment: NodeJS.ProcessEnv,
): Promise<string[]> {
  const silent = () => undefined;
  const access = await openAccess({
    options,
    environment,
    write: false,
    onNote: silent,
    onWarning: silent,
    onOpenFailure: silent,
  });
  try {
    const { client, namespace } = access;
    if (kind === 'condition types') return await conditionTypes(access, subject);
    if (kind === 'waves')
      return (await client.get(wavePlanKind, { namespace, name: subject })).spec.waves.map(({ name }) => name);
    const [repository = '', ...more] = current.split('.');
    const filter = { namespace, limit: MAX_NAMES };
    if (kind !== 'revisions') {
      const { items } = await client.list<KubernetesObject>(KINDS[kind], filter);
      return items.map(({ metadata }) => metadata.name);
    }
    const { items } = await client.list(packageRevisionKind, {
      ...filter,
      ...(more.length === 0 ? {} : { fieldSelector: `spec.repository=${repository}` }),
    });
    return items.map(({ metadata }) => metadata.name);
  } finally {
    await access.close();
  }
}

/** Types of the gates and conditions of a revision; Sluice also knows the gates that policies require. */
async function conditionTypes(access: Access, name: string): Promise<string[]> {
  const { client, namespace, isSluice } = access;
  const { spec, status } = await client.get(packageRevisionKind, { namespace, name });
  const own = [
    ...(spec.readinessGates ?? []).map(({ conditionType }) => conditionType),
    ...(status?.conditions ?? []).map(({ type }) => type),
  ];
  if (!isSluice) return own;
  const { explanation } = await readRevision(access, name, 'explain', explainSchema);
  return [...explanation.gates.map(({ type }) => type), ...own];
}
