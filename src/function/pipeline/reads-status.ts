import { readKptfile } from '../../../kptfile-schema/index.ts';
import { isKptfilePath } from '../../package/merge/package-files.ts';
import type { Catalog } from '../catalog/catalog.ts';
import { withRegistry } from '../catalog/image-name.ts';
import type { PipelineInput } from '../model/pipeline.ts';

/**
 * True if a function that these Kptfiles name may depend on the conditions in them: one that declares so, and every one
 * outside of this process.
 */
export function readsStatus(
  { files, rules, registry }: Pick<PipelineInput, 'files' | 'rules' | 'registry'>,
  catalog: Catalog,
): boolean {
  for (const [path, text] of files) {
    if (!isKptfilePath(path)) continue;
    const read = readKptfile(text);
    if (!read.ok) continue;
    const { mutators = [], validators = [] } = read.kptfile.pipeline ?? {};
    for (const each of [...mutators, ...validators]) {
      const resolved = catalog.resolve(withRegistry(each, registry), rules);
      if (
        resolved.type === 'builtIn'
          ? resolved.fn.readsStatus === true || each.when !== undefined
          : resolved.type !== 'forbidden'
      )
        return true;
    }
  }
  return false;
}
