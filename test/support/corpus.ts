import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Real packages beside the checkout; tests that need them are skipped, with this reason, where they are missing. */
export const corpus = fileURLToPath(new URL('../../../shared/corpus/', import.meta.url));
export const corpusMissing: string | false = existsSync(corpus) ? false : `no corpus of real packages at ${corpus}`;

export interface CorpusPackage {
  /** A name for it in a repository. */
  readonly name: string;
  readonly folder: string;
  readonly files: ReadonlyMap<string, Buffer>;
}

/** Top-level packages of the corpus: folders with a Kptfile, what lies below one belongs to it. */
export function corpusPackages(): CorpusPackage[] {
  const found: CorpusPackage[] = [];
  const visit = (folder: string) => {
    const entries = readdirSync(folder, { withFileTypes: true });
    if (entries.some((entry) => entry.name === 'Kptfile')) {
      const name = folder.slice(folder.lastIndexOf('/') + 1);
      found.push({ name, folder, files: filesOf(folder) });
    } else for (const entry of entries) if (entry.isDirectory()) visit(join(folder, entry.name));
  };
  visit(join(corpus, 'packages'));
  return found.sort((a, b) => (a.name < b.name ? -1 : 1));
}

function filesOf(folder: string, prefix = ''): Map<string, Buffer> {
  const files = new Map<string, Buffer>();
  for (const entry of readdirSync(join(folder, prefix), { withFileTypes: true })) {
    const path = prefix === '' ? entry.name : `${prefix}/${entry.name}`;
    if (entry.isDirectory()) for (const [name, data] of filesOf(folder, path)) files.set(name, data);
    else if (entry.isFile()) files.set(path, readFileSync(join(folder, path)));
  }
  return files;
}
