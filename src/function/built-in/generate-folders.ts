import type { YAMLMap } from 'yaml';
import { isSluiceError, SluiceError } from '../../foundation/sluice-error.ts';
import type { KrmFunction } from '../model/function.ts';
import { resultFor } from '../model/function-result.ts';
import { Resource } from '../resource/resource.ts';
import { graftNode } from '../yaml/graft-node.ts';
import { inheritedAnnotations } from './support/fields/inherited-annotations.ts';
import { type FolderNode, layeredFolders, treeOfFolders } from './support/folder-tree.ts';

const FOLDER_GROUP = 'resourcemanager.cnrm.cloud.google.com';
const DEPENDS_ON = 'config.kubernetes.io/depends-on';
const LATEST = 'blueprints.cloud.google.com/v1alpha3';
const NESTED = [LATEST, 'cft.dev/v1alpha2'];
const LAYERED = 'cft.dev/v1alpha1';

export const generateFolders: KrmFunction = {
  name: 'generate-folders',
  doc: {
    summary: 'Makes the Config Connector Folders of a ResourceHierarchy.',
    description: [
      'Each ResourceHierarchy (blueprints.cloud.google.com/v1alpha3, cft.dev/v1alpha2 or cft.dev/v1alpha1) of the package becomes one Folder for each name in `spec.config`: a name, or a name with a list of what is below it. `$subtree: <name>` stands for a list in `spec.subtrees`. `spec.parentRef` names the organization, or with `kind: Folder` the folder, that all of them are in.',
      'Folders are called by their path, as in `dev.retail`, and get namespace and annotations of the ResourceHierarchy. In v1alpha3 a Folder refers to the one above it by `spec.folderRef`, and in a namespace also by `config.kubernetes.io/depends-on`; in older versions by an annotation.',
    ].join('\n\n'),
    examples: [
      'pipeline:\n  mutators:\n    - image: generate-folders:v0.1.1\n',
      'apiVersion: blueprints.cloud.google.com/v1alpha3\nkind: ResourceHierarchy\nmetadata:\n  name: root-hierarchy\n  namespace: hierarchy\n  annotations:\n    config.kubernetes.io/local-config: "true"\nspec:\n  parentRef:\n    external: "123456789012"\n  config:\n    - dev:\n        - retail\n        - finance\n    - prod\n',
    ],
    differences: [
      'A Folder that the package has stays in its file, and keeps the comments of fields that stay.',
      'Numbers are names as well; what is neither a name nor a list of folders is an error.',
    ],
  },
  run(list) {
    const byKey = new Map(list.items.map((item) => [keyOf(item), item]));
    for (const hierarchy of [...list.items]) {
      const { apiVersion, kind } = hierarchy;
      if (kind !== 'ResourceHierarchy' || ![...NESTED, LAYERED].includes(apiVersion)) continue;
      const named = `ResourceHierarchy ${hierarchy.name}`;
      if (apiVersion !== LATEST) {
        const message = `${named} references an older Resource Hierarchy GroupVersion. Latest GroupVersion is ${LATEST}.`;
        list.results.push(resultFor('warning', message, hierarchy));
      }
      try {
        const made = apiVersion === LAYERED ? layeredOf(hierarchy) : nestedOf(hierarchy);
        for (const folder of made) {
          const there = byKey.get(keyOf(folder));
          if (there === undefined) {
            byKey.set(keyOf(folder), folder);
            list.items.push(folder);
          } else there.document.contents = graftNode(there.root, folder.root) as YAMLMap;
        }
      } catch (error) {
        if (!isSluiceError(error, 'InvalidInput')) throw error;
        list.results.push(resultFor('error', `${named} ${error.message}`, hierarchy));
      }
    }
  },
};

/** The parent of the top-level folders. */
interface Parent {
  readonly kind: string;
  readonly name: string;
}

function nestedOf(hierarchy: Resource): Resource[] {
  const parent = hierarchy.get(['spec', 'parentRef']) as { kind?: unknown; external?: unknown } | null | undefined;
  if (parent?.external === undefined || parent.external === null)
    throw new SluiceError('InvalidInput', 'has an undefined parentRef');
  const kind = String(parent.kind ?? 'Organization');
  if (!['Organization', 'Folder'].includes(kind))
    throw new SluiceError('InvalidInput', 'has an unsupported parentRef kind');
  const tree = treeOfFolders(hierarchy.get(['spec', 'config']), hierarchy.get(['spec', 'subtrees']));
  return foldersOf(hierarchy, { kind, name: String(parent.external) }, tree, inheritedAnnotations(hierarchy));
}

function layeredOf(hierarchy: Resource): Resource[] {
  const tree = layeredFolders(hierarchy.get(['spec', 'layers']), hierarchy.get(['spec', 'config']));
  const parent = { kind: 'Organization', name: String(hierarchy.get(['spec', 'organization']) ?? '') };
  return foldersOf(hierarchy, parent, tree, {});
}

function foldersOf(
  { apiVersion, namespace }: Resource,
  parent: Parent,
  tree: readonly FolderNode[],
  inherited: Readonly<Record<string, string>>,
): Resource[] {
  const made: Resource[] = [];
  const visit = (nodes: readonly FolderNode[], path: readonly string[]) => {
    for (const { name, children } of nodes) {
      const { annotations, ref } =
        apiVersion === LATEST ? nativeReference(parent, path, namespace) : annotatedReference(parent, path);
      const all = { ...inherited, ...annotations };
      const metadata = {
        name: normalized([...path, name].join('.')),
        ...(namespace === undefined ? {} : { namespace }),
        ...(Object.keys(all).length === 0 ? {} : { annotations: all }),
      };
      const spec = { displayName: name, ...ref };
      made.push(Resource.from({ apiVersion: `${FOLDER_GROUP}/v1beta1`, kind: 'Folder', metadata, spec }));
      visit(children, [...path, name]);
    }
  };
  visit(tree, []);
  return made;
}

interface Reference {
  readonly annotations?: Readonly<Record<string, string>>;
  readonly ref?: Readonly<Record<string, unknown>>;
}

function nativeReference(parent: Parent, path: readonly string[], namespace: string | undefined): Reference {
  if (path.length === 0) {
    const field = parent.kind === 'Organization' ? 'organizationRef' : 'folderRef';
    return { ref: { [field]: { external: parent.name } } };
  }
  const name = normalized(path.join('.'));
  const ref = { folderRef: { name } };
  if (namespace === undefined) return { ref };
  return { ref, annotations: { [DEPENDS_ON]: `${FOLDER_GROUP}/namespaces/${namespace}/Folder/${name}` } };
}

function annotatedReference(parent: Parent, path: readonly string[]): Reference {
  const isTop = path.length === 0;
  const field = isTop && parent.kind === 'Organization' ? 'organization-id' : 'folder-ref';
  return { annotations: { [`cnrm.cloud.google.com/${field}`]: normalized(isTop ? parent.name : path.join('.')) } };
}

/** As a name of Kubernetes. */
function normalized(name: string): string {
  return name
    .toLowerCase()
    .replace(/[_ ]/g, '-')
    .replace(/[^a-z0-9.-]/g, '');
}

function keyOf({ group, kind, namespace, name }: Resource): string {
  return JSON.stringify([group, kind, namespace, name]);
}
