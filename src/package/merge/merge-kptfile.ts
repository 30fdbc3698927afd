import { isMap, type YAMLMap } from 'yaml';
import { KPTFILE_REQUEST_ANNOTATIONS } from '../model/revision/lifecycle-annotations.ts';
import { listKeysOf } from './list-keys.ts';
import { mergeParts } from './merge-parts.ts';
import { type OverwrittenFields, OverwrittenParts } from './overwritten.ts';
import { type PackageFile, sameFile } from './package-files.ts';
import { writeDocument } from './write-document.ts';
import { readYamlDocument, scalarText } from './yaml-document.ts';

/** A Kptfile contains conditions and a pipeline, not data. */
const MAX_LENGTH = 256 * 1024;

/**
 * A Kptfile merged three ways, as kpt does: name, namespace and upstream of the package itself stay local, of packages within it name
 * and namespace. Unlike kpt, annotations that request automatic proposal and approval stay local too: upstream cannot request those. Conditions and everything else in `status` were given for the local package and never come from upstream. A file
 * that cannot be read, or is too large, stays as it was changed locally. Local changes that are lost are added to `overwritten`.
 */
export function mergeKptfile(
  path: string,
  local: PackageFile | undefined,
  original: PackageFile | undefined,
  updated: PackageFile | undefined,
  overwritten: OverwrittenFields,
): PackageFile | undefined {
  if (path !== 'Kptfile' && sameFile(local, original)) return updated;
  if (local === undefined || updated === undefined || sameFile(local, updated)) return local;
  if (Math.max(local.data.length, updated.data.length) > MAX_LENGTH) return local;
  const [mine, before, after] = [local, original, updated].map((file) =>
    file === undefined ? undefined : readYamlDocument(file.data.toString('utf8')),
  );
  if (mine === undefined || after === undefined) return local;
  const own = path === 'Kptfile' ? ['status', 'upstream', 'upstreamLock'] : ['status'];
  for (const side of [before?.contents, after.contents]) if (side !== undefined) strip(side, own);
  const lost = new OverwrittenParts();
  const listKeys = listKeysOf('kpt.dev', 'Kptfile');
  mergeParts(mine.contents, before?.contents, after.contents, { listKeys, overwritten: lost });
  const text = local.data.toString('utf8');
  const written = writeDocument(mine, text);
  if (written === undefined || written === text) return local;
  const name = scalarText(mine.contents, 'metadata', 'name') ?? '';
  if (lost.total > 0) overwritten.add(path, { kind: 'Kptfile', name }, lost);
  return { ...local, data: Buffer.from(written) };
}

/** Takes out what belongs to the local package alone. */
function strip(kptfile: YAMLMap, fields: readonly string[]): void {
  for (const field of fields) kptfile.delete(field);
  const metadata = kptfile.get('metadata');
  if (!isMap(metadata)) return;
  for (const field of ['name', 'namespace']) metadata.delete(field);
  const annotations = metadata.get('annotations');
  if (!isMap(annotations)) return;
  for (const key of KPTFILE_REQUEST_ANNOTATIONS) annotations.delete(key);
  if (annotations.items.length === 0) metadata.delete('annotations');
}
