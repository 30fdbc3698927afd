import { join, resolve } from 'node:path';
import { type KrmObject, readKrmFile } from '../../package/krm.ts';
import { DEFAULT_NAMESPACE } from '../../resource/object.ts';
import { printable } from '../output/printable.ts';
import { toYaml } from '../output/structured.ts';
import type { DataOptions, Invocation, Outcome } from '../program/invocation.ts';
import { findRevision, inSession } from './in-session.ts';
import { METADATA_FILE, metadataText, type PulledFrom, writeNew, writePackage } from './local-package.ts';

/** `sluice rpkg pull` */
export function rpkgPull(
  name: string,
  folder: string | undefined,
  options: DataOptions,
  invocation: Invocation,
): Promise<Outcome> {
  return inSession(options, invocation, async (session) => {
    const { terminal } = invocation;
    const revision = await findRevision(session, name);
    const content = await session.store.content(revision.name);
    for (const skipped of content.skipped) terminal.note(`warning: ${printable(skipped)} is left out`);
    const namespace = session.repository(revision.key.repository)?.metadata.namespace ?? DEFAULT_NAMESPACE;
    const from = { name: revision.name, namespace, uid: revision.uid, commit: revision.commit };
    if (folder === undefined) {
      const kptfile = content.files.get('Kptfile');
      const own = kptfile === undefined ? [] : readKrmFile('Kptfile', kptfile).objects;
      terminal.out.write(toYaml(resourceList([...own, ...content.objects()], from)));
      return 0;
    }
    const target = resolve(folder);
    const files = new Map(content.files);
    files.delete(METADATA_FILE);
    await writePackage(target, files);
    await writeNew(join(target, METADATA_FILE), metadataText(from));
    terminal.note(`${printable(revision.name)} pulled into ${folder} (${files.size} files, commit ${revision.commit})`);
    return 0;
  });
}

/** The KRM objects as kpt functions take them, each with the file that it stands in. */
function resourceList(objects: readonly KrmObject[], from: PulledFrom) {
  return {
    apiVersion: 'config.kubernetes.io/v1',
    kind: 'ResourceList',
    metadata: { annotations: { 'sluice.dev/revision': from.name, 'sluice.dev/commit': from.commit } },
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
