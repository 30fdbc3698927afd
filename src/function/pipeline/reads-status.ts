import { readKptfile } from '../../../kptfile-schema/index.ts';
import { isKptfilePath } from '../../package/merge/package-files.ts';
import type { Catalog } from '../catalog/catalog.ts';
import type { FunctionRules } from '../model/function-rules.ts';

/**
 * True if a function that these Kptfiles name may depend on the conditions that stand in them: one that says so, and every one
 * outside of this process.
 */
export function readsStatus(files: ReadonlyMap<string, string>, catalog: Catalog, rules: FunctionRules): boolean {
  for (const [path, text] of files) {
    if (!isKptfilePath(path)) continue;
    const read = readKptfile(text);
    if (!read.ok) continue;
    const { mutators = [], validators = [] } = read.kptfile.pipeline ?? {};
    for (const each of [...mutators, ...validators]) {
      const resolved = catalog.resolve(each, rules);
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
