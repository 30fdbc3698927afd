import { isSluiceError } from '../../foundation/sluice-error.ts';
import type { Client } from '../../resource/client/client.ts';
import { packageRevKind } from '../../resource/kinds/porch/package-rev.ts';
import { packageRevisionKind } from '../../resource/kinds/porch/package-revision.ts';
import type { KubernetesObject, Stored } from '../../resource/object/object.ts';
import { defineKind } from '../../resource/schema/define-kind.ts';
import type { Kind } from '../../resource/schema/kind.ts';
import type { Note } from './migration-report.ts';

/** Package revisions that newer versions of Porch keep as custom resources. Their form is still changing, so that only names count here. */
const packageRevisionV1alpha2 = defineKind({
  group: packageRevisionKind.group,
  version: 'v1alpha2',
  kind: packageRevisionKind.kind,
  plural: packageRevisionKind.plural,
  description: 'A package revision as a custom resource of Porch.',
});

/** Porch's kinds beside packages and repositories, whose objects this command does not move. Only their names count here. */
const OTHER_KINDS: readonly Kind[] = [
  ['PackageVariant', 'v1alpha1'] as const,
  ['PackageVariantSet', 'v1alpha2'] as const,
  ['FunctionConfig', 'v1alpha1'] as const,
].map(([kind, version]) =>
  defineKind({
    ...{ group: 'config.porch.kpt.dev', version, kind, plural: `${kind.toLowerCase()}s` },
    description: `A ${kind} of Porch.`,
  }),
);

/** The objects of a kind; none where the cluster does not have the kind, or the caller must not read it, which `onRefused` receives. */
async function listed<T extends KubernetesObject>(
  client: Client,
  kind: Kind<T>,
  namespace: string | undefined,
  onRefused: (message: string) => void,
): Promise<readonly Stored<T>[]> {
  try {
    return (await client.list(kind, namespace === undefined ? {} : { namespace })).items;
  } catch (error) {
    if (isSluiceError(error, 'NotFound') || isSluiceError(error, 'Unsupported')) return [];
    if (!isSluiceError(error, 'Refused')) throw error;
    onRefused(error.message);
    return [];
  }
}

/**
 * Names of Porch's internal objects, `<namespace>/<revision>`: its CR cache has one for each package revision, its database cache none.
 * Undefined if the caller may not list them.
 */
export async function packageRevNames(
  client: Client,
  namespace: string | undefined,
): Promise<ReadonlySet<string> | undefined> {
  let isRefused = false;
  const objects = await listed(client, packageRevKind, namespace, () => {
    isRefused = true;
  });
  return isRefused ? undefined : new Set(objects.map(({ metadata }) => `${metadata.namespace}/${metadata.name}`));
}

/** What the cluster has of Porch besides repositories and their package revisions. */
export async function otherNotes(client: Client, namespace: string | undefined): Promise<readonly Note[]> {
  const notes: Note[] = [];
  const addNotes = (
    kind: Kind,
    objects: readonly KubernetesObject[],
    note: Pick<Note, 'reason' | 'message' | 'next'>,
  ) => {
    for (const [place, names] of byNamespace(objects))
      notes.push({ namespace: place, subject: kind.kind, ...note, message: `${names.length} ${note.message}`, names });
  };
  const onRefused = (kind: Kind) => (message: string) => {
    const text = `objects of the kind ${kind.kind} cannot be listed (${message})`;
    notes.push({ namespace: namespace ?? '*', subject: kind.kind, reason: 'Refused', message: text, names: [] });
  };
  for (const kind of OTHER_KINDS)
    addNotes(kind, await listed(client, kind, namespace, onRefused(kind)), {
      reason: 'Stays',
      message: `${kind.kind} objects, which stay in this cluster: Sluice has no controller for them`,
      next: 'run their controller against Sluice, or stop it: while it runs, it changes packages at Porch',
    });
  const revisions = await listed(client, packageRevisionV1alpha2, namespace, onRefused(packageRevisionV1alpha2));
  addNotes(packageRevisionV1alpha2, revisions, {
    reason: 'CustomResources',
    message:
      'package revisions of porch.kpt.dev/v1alpha2, which are not compared; Sluice serves v1alpha1 with other uids',
    next: 'update what refers to their uids; "sluice rpkg get" shows what Sluice reads from Git',
  });
  return notes;
}

function byNamespace(objects: readonly KubernetesObject[]): ReadonlyMap<string, string[]> {
  const names = new Map<string, string[]>();
  for (const { metadata } of objects) {
    const place = metadata.namespace ?? '';
    names.set(place, [...(names.get(place) ?? []), metadata.name]);
  }
  return names;
}
