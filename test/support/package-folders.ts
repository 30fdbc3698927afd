import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';

/** The folders with a Kptfile below a folder, without packages inside of packages. */
export function packageFolders(folder: string): string[] {
  if (existsSync(join(folder, 'Kptfile'))) return [folder];
  const below = readdirSync(folder).map((name) => join(folder, name));
  return below.filter((path) => statSync(path).isDirectory()).flatMap(packageFolders);
}

/** The files of a package by path, without its Kptfile: gates would close the proposal. */
export function packageFiles(folder: string): Record<string, string> {
  const names = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const paths = names.map((entry) => join(entry.parentPath, entry.name));
  const own = paths.map((path) => [path.slice(folder.length + 1), path] as const);
  return Object.fromEntries(
    own.filter(([path]) => path !== 'Kptfile').map(([path, place]) => [path, readFileSync(place, 'utf8')]),
  );
}
