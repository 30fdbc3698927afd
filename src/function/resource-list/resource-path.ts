import { isYamlPath } from '../../package/krm.ts';
import { isKptfilePath } from '../../package/merge/package-files.ts';

/** True for the files that hold resources: YAML and Kptfiles. */
export function isResourcePath(path: string): boolean {
  return isYamlPath(path) || isKptfilePath(path);
}
