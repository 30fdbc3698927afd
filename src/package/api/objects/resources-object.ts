import type { RenderStatus } from '../../../../kptfile-schema/index.ts';
import type { PackageRevision as RevisionObject } from '../../../resource/kinds/porch/package-revision.ts';
import type { packageRevisionResourcesKind } from '../../../resource/kinds/porch/package-revision-resources.ts';
import { invalidValue } from '../../../resource/object/invalid-object.ts';
import { deepFreeze, type ManagedFieldsEntry, type Stored } from '../../../resource/object/object.ts';
import type { ObjectOf } from '../../../resource/schema/kind.ts';
import type { PackageContent } from '../../model/content/content.ts';
import { refusedFiles, sortFiles, type WholeFiles } from '../../plan/edit/replace-texts.ts';
import { renderStatusOf } from './render-status.ts';
import { PROBLEM_ANNOTATION } from './revision-object.ts';

type Resources = ObjectOf<typeof packageRevisionResourcesKind>;

/** Names the files that `spec.resources` does not have, for clients that do not know `spec.binaryResources`. */
export const BINARY_FILES_ANNOTATION = 'sluice.dev/binary-files';
/** An annotation is no place for thousands of names, or for long ones. */
const MAX_NAMES = 100;
const MAX_NAME_CHARACTERS = 200;
const MAX_NAMES_BYTES = 4096;

/** The files of a revision as an object; `status` is the result of the last render. */
export function resourcesObject(
  revision: Stored<RevisionObject>,
  content: PackageContent,
  status: RenderStatus | undefined,
  managedFields: readonly ManagedFieldsEntry[] | undefined,
): Stored<Resources> {
  const { texts, binary, unnameable } = sortFiles(content);
  const others = [...binary.keys(), ...unnameable];
  return createObject(revision, {
    ...{ managedFields, resources: texts, renderStatus: renderStatusOf(status) },
    ...(others.length === 0 ? {} : { annotations: { [BINARY_FILES_ANNOTATION]: namesOf(others) } }),
    ...(binary.size === 0
      ? {}
      : { binaryResources: Object.fromEntries([...binary].map(([path, data]) => [path, data.toString('base64')])) }),
    skippedFiles: [...content.skipped, ...unnameable.map((path) => `${path} (a name that no map can hold)`)],
  });
}

/** The names, as many as an annotation should have. */
function namesOf(paths: readonly string[]): string {
  const names: string[] = [];
  let bytes = 0;
  for (const path of paths) {
    const name = path.length > MAX_NAME_CHARACTERS ? `${path.slice(0, MAX_NAME_CHARACTERS)}…` : path;
    bytes += Buffer.byteLength(name) + 2;
    if (names.length === MAX_NAMES || bytes > MAX_NAMES_BYTES) break;
    names.push(name);
  }
  const more = paths.length - names.length;
  return [...names, ...(more > 0 ? [`and ${more} more`] : [])].join(', ');
}

/** The files that a client wrote. Throws InvalidInput for what is no base64. */
export function filesOf({ metadata, spec }: Resources): WholeFiles {
  const texts = new Map(Object.entries(spec.resources ?? {}));
  if (spec.binaryResources === undefined) return { texts, binary: undefined };
  const binary = new Map<string, Buffer>();
  for (const [path, text] of Object.entries(spec.binaryResources)) {
    const data = Buffer.from(text, 'base64');
    // The decoder passes over what is wrong.
    if (data.toString('base64') !== text)
      throw refusedFiles(metadata.name, [
        invalidValue(['spec', 'binaryResources', path], path, 'the content is not valid base64'),
      ]);
    binary.set(path, data);
  }
  return { texts, binary };
}

/** An object without files, with the reason. */
export function unreadableObject(revision: Stored<RevisionObject>, problem: string): Stored<Resources> {
  return createObject(revision, { annotations: { [PROBLEM_ANNOTATION]: problem } });
}

/** Returns the object without the files, when they are not read. */
export function withoutFiles(revision: Stored<RevisionObject>): Stored<Resources> {
  return createObject(revision, {});
}

function createObject(
  { metadata, spec }: Stored<RevisionObject>,
  parts: {
    readonly annotations?: Readonly<Record<string, string>> | undefined;
    readonly managedFields?: readonly ManagedFieldsEntry[] | undefined;
    readonly resources?: Readonly<Record<string, string>>;
    readonly binaryResources?: Readonly<Record<string, string>>;
    readonly skippedFiles?: readonly string[];
    readonly renderStatus?: ReturnType<typeof renderStatusOf>;
  },
): Stored<Resources> {
  const { name, namespace, uid, resourceVersion, creationTimestamp, labels } = metadata;
  const { annotations, managedFields, resources, binaryResources, renderStatus = {}, skippedFiles = [] } = parts;
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
      ...(binaryResources === undefined ? {} : { binaryResources }),
    },
    status: { renderStatus, ...(skippedFiles.length === 0 ? {} : { skippedFiles: [...skippedFiles] }) },
  });
}
