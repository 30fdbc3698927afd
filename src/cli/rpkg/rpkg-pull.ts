import { join, resolve } from 'node:path';
import { isYamlPath, type KrmObject, readKrmFile } from '../../package/model/krm/krm.ts';
import { findRevision } from '../access/find-revision.ts';
import { inPackages } from '../access/in-packages.ts';
import { METADATA_FILE, readFiles } from '../access/package-contents.ts';
import { COMMIT_ANNOTATION, metadataText, type PulledFrom, writeNew, writePackage } from '../kptfile/local-package.ts';
import type { CommandResult, Invocation, PlaceOptions } from '../output/invocation.ts';
import { printable } from '../output/printable.ts';
import { toYaml } from '../output/structured.ts';

/** `sluice rpkg pull` */
export function rpkgPull(
  name: string,
  folder: string | undefined,
  options: PlaceOptions,
  invocation: Invocation,
): Promise<CommandResult> {
  return inPackages(options, invocation, async (access) => {
    const { terminal } = invocation;
    const revision = await findRevision(access, name);
    const { files, omitted, state } = await readFiles(access, revision);
    for (const skipped of omitted) terminal.note(`warning: ${printable(skipped)} is left out`);
    const { namespace = access.namespace, uid } = revision.metadata;
    const from = { name: revision.metadata.name, namespace, uid, state };
    if (folder === undefined) {
      terminal.out.write(toYaml(resourceList(objectsOf(files), from)));
      return 0;
    }
    const target = resolve(folder);
    await writePackage(target, files);
    await writeNew(join(target, METADATA_FILE), metadataText(from));
    const at = state.commit === undefined ? `version ${state.resourceVersion}` : `commit ${state.commit}`;
    terminal.note(`${printable(from.name)} pulled into ${folder} (${files.size} files, ${printable(at)})`);
    return 0;
  });
}

/** Returns the objects of the Kptfile first, then those in YAML files. */
function objectsOf(files: ReadonlyMap<string, Buffer>): KrmObject[] {
  const kptfile = files.get('Kptfile');
  const own = kptfile === undefined ? [] : readKrmFile('Kptfile', kptfile).objects;
  return [...own, ...[...files].flatMap(([path, data]) => (isYamlPath(path) ? readKrmFile(path, data).objects : []))];
}

/** Formats the KRM objects as input of kpt functions, each with its file. */
function resourceList(objects: readonly KrmObject[], from: PulledFrom) {
  const { commit } = from.state;
  return {
    apiVersion: 'config.kubernetes.io/v1',
    kind: 'ResourceList',
    metadata: {
      annotations: {
        'sluice.dev/revision': from.name,
        ...(commit === undefined ? {} : { [COMMIT_ANNOTATION]: commit }),
      },
    },
    items: objects.map(({ value, file, index }) => {
      const metadata = asRecord(value.metadata);
      const annotations = {
        ...asRecord(metadata.annotations),
        'config.kubernetes.io/index': String(index),
        'config.kubernetes.io/path': file,
        'internal.config.kubernetes.io/index': String(index),
        'internal.config.kubernetes.io/path': file,
      };
      return { ...value, metadata: { ...metadata, annotations } };
    }),
  };
}

function asRecord(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {};
}
