import { existsSync, realpathSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Of this installation: where `src/`, or what is built from it, is. */
const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

/**
 * What a worker may read: the code of Sluice and the packages that it uses, without links. Not what is beside them: the data folder,
 * with its keys and tokens, is in the folder of the code where a user tries Sluice out.
 */
export function moduleTree(): string[] {
  const folders = ['src', 'kptfile-schema'].map((name) => join(ROOT, name));
  // Packages are looked for in all folders above; how a folder's code is meant is in its package.json.
  const shared = ancestors(ROOT).flatMap((folder) => [join(folder, 'node_modules'), join(folder, 'package.json')]);
  const found = [...folders, ...shared].filter((path) => existsSync(path));
  return [...new Set(found.flatMap((path) => [path, realpathSync(path)]))];
}

function ancestors(folder: string): string[] {
  const parent = dirname(folder);
  return parent === folder ? [folder] : [folder, ...ancestors(parent)];
}
