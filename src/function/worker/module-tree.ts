import { existsSync, realpathSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Of this installation: where `src/`, or what is built from it, is. */
const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

/**
 * What a worker may read: the code of Sluice, the packages that it uses, and the folders of packs, all without links. Not what stands
 * beside them: the data folder, with its keys and tokens, is in the folder of the code where somebody tries Sluice out.
 */
export function moduleTree(packs: readonly string[]): string[] {
  const folders = ['src', 'kptfile-schema'].map((name) => join(ROOT, name));
  const ofPacks = packs.filter((url) => url.startsWith('file:')).map((url) => dirname(fileURLToPath(url)));
  // Packages are looked for in all folders above; how a folder's code is meant is in its package.json.
  const above = [ROOT, ...ofPacks].flatMap(ancestors);
  const shared = above.flatMap((folder) => [join(folder, 'node_modules'), join(folder, 'package.json')]);
  const found = [...folders, ...ofPacks, ...shared].filter((path) => existsSync(path));
  return [...new Set(found.flatMap((path) => [path, realpathSync(path)]))];
}

function ancestors(folder: string): string[] {
  const parent = dirname(folder);
  return parent === folder ? [folder] : [folder, ...ancestors(parent)];
}
