import type { RenderStatus } from '../../../../kptfile-schema/index.ts';
import type { PackageRevision as RevisionObject } from '../../../resource/kinds/porch/package-revision.ts';
import type { packageRevisionResourcesKind } from '../../../resource/kinds/porch/package-revision-resources.ts';
import { deepFreeze, type ManagedFieldsEntry, type Stored } from '../../../resource/object/object.ts';
import type { ObjectOf } from '../../../resource/schema/kind.ts';
import type { PackageContent } from '../../model/content/content.ts';
import { textsOf } from '../../plan/edit/replace-texts.ts';
import { renderStatusOf } from './render-status.ts';
import { PROBLEM_ANNOTATION } from './revision-object.ts';

type Resources = ObjectOf<typeof packageRevisionResourcesKind>;

/** Names the files that a map of strings cannot hold; they stay as they are in every update. */
export const BINARY_FILES_ANNOTATION = 'sluice.dev/binary-files';
/** An annotation is no place for thousands of names. */
const MAX_NAMES = 100;

/** The files of a revision as an object; `status` is the result of the last render. */
export function resourcesObject(
  revision: Stored<RevisionObject>,
  content: PackageContent,
  status: RenderStatus | undefined,
  managedFields: readonly ManagedFieldsEntry[] | undefined,
): Stored<Resources> {
  const { texts, binary } = textsOf(content);
  const more = binary.length - MAX_NAMES;
  const names = [...binary.slice(0, MAX_NAMES), ...(more > 0 ? [`and ${more} more`] : [])].join(', ');
  const annotations = binary.length === 0 ? undefined : { [BINARY_FILES_ANNOTATION]: names };
  return made(revision, { annotations, managedFields, resources: texts, renderStatus: renderStatusOf(status) });
}

/** An object without files, with the reason. */
export function unreadableObject(revision: Stored<RevisionObject>, problem: string): Stored<Resources> {
  return made(revision, { annotations: { [PROBLEM_ANNOTATION]: problem } });
}

/** What is left when the files are not read. */
export function withoutFiles(revision: Stored<RevisionObject>): Stored<Resources> {
  return made(revision, {});
}

function made(
  { metadata, spec }: Stored<RevisionObject>,
  parts: {
    readonly annotations?: Readonly<Record<string, string>> | undefined;
    readonly managedFields?: readonly ManagedFieldsEntry[] | undefined;
    readonly resources?: Readonly<Record<string, string>>;
    readonly renderStatus?: ReturnType<typeof renderStatusOf>;
  },
): Stored<Resources> {
  const { name, namespace, uid, resourceVersion, creationTimestamp, labels } = metadata;
  const { annotations, managedFields, resources, renderStatus = {} } = parts;
  return deepFreeze({
    apiVersion: 'porch.kpt.dev/v1alpha1',
    kind: 'PackageRevisionResources',
    metadata: {
      ...{ name, namespace, uid, resourceVersion, creationTimestamp },
      ...(labels === undefined ? {} : { labels }),
      ...(annotations === undefined ? {} : { annotations }),
      ...(managedFields === undefined ? {} : { managedFields }),
    },
    spec: {
      packageName: spec.packageName,
      workspaceName: spec.workspaceName,
      ...(spec.revision === undefined ? {} : { revision: spec.revision }),
      repository: spec.repository,
      ...(resources === undefined ? {} : { resources }),
    },
    status: { renderStatus },
  });
}
