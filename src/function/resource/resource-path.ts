import { isKptfilePath } from '../../package/merge/package-files.ts';
import { isYamlPath } from '../../package/model/krm/krm.ts';

/** True for files with resources: YAML and Kptfiles. */
export function isResourcePath(path: string): boolean {
  return isYamlPath(path) || isKptfilePath(path);
}
