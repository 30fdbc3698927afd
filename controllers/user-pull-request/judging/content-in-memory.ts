import { createHash } from 'node:crypto';
import { contentOf, type Kptfile, readKptfile } from '../../../kptfile-schema/index.ts';
import { canonicalJson, digest } from '../../../src/foundation/text/canonical-json.ts';
import { readsAlike } from '../../../src/package/model/krm/line-breaks.ts';

export function kptfileIn(data: Buffer | undefined): Kptfile | undefined {
  const read = data === undefined ? undefined : readKptfile(data);
  return read?.ok === true ? read.kptfile : undefined;
}

/** The digest is none of Git: it compares with those made here alone. `differing` are the paths that are others than on the main branch. */
export function contentOfFiles(files: ReadonlyMap<string, Buffer>, differing: readonly string[]): string {
  const kptfile = files.get('Kptfile');
  const read = kptfileIn(kptfile);
  const isReadAlike = kptfile !== undefined && read !== undefined && readsAlike(kptfile);
  const parts = [...files]
    .filter(([path]) => path !== 'Kptfile' || !isReadAlike)
    .map(([path, data]) => [path, createHash('sha256').update(data).digest('hex')])
    .sort(([one = ''], [other = '']) => (one < other ? -1 : 1));
  return digest(canonicalJson([parts, differing, isReadAlike ? contentOf(read) : '']));
}
