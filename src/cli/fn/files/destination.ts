import type { Resource } from '../../../function/resource/resource.ts';
import type { Terminal } from '../../output/terminal.ts';
import { checkNoFolder, writeNewFolder } from './package-folder.ts';

/** Destination of resources that do not stay in their folder: kpt's `-o`. */
export type Destination =
  | { readonly type: 'stdout' }
  | { readonly type: 'unwrap' }
  | { readonly type: 'folder'; readonly path: string };

/** Reads `-o`. Refuses an existing folder, before any work is done. */
export async function destinationOf(output: string | undefined): Promise<Destination | undefined> {
  if (output === undefined || output === '') return undefined;
  if (output === 'stdout' || output === 'unwrap') return output === 'stdout' ? { type: 'stdout' } : { type: 'unwrap' };
  await checkNoFolder(output);
  return { type: 'folder', path: output };
}

/** Writes the resources of files; `config` is put into a ResourceList as its functionConfig. */
export async function deliver(
  files: ReadonlyMap<string, string>,
  destination: Destination,
  terminal: Terminal,
  config?: Resource,
): Promise<void> {
  if (destination.type === 'folder') return writeNewFolder(destination.path, files);
  // The YAML modules are large, and needed for streams only.
  if (destination.type === 'unwrap') return void terminal.out.write(await documents(files));
  const { sourcePackage } = await import('../../../function/resource-list/source-package.ts');
  terminal.out.write(sourcePackage(files, config).text);
}

/** Files after a pipeline has run. */
export function withEdits(
  files: ReadonlyMap<string, string>,
  edits: ReadonlyMap<string, string | null>,
): ReadonlyMap<string, string> {
  const next = new Map(files);
  for (const [path, text] of edits) {
    if (text === null) next.delete(path);
    else next.set(path, text);
  }
  return next;
}

/** All resources as one YAML text, each as it is written in its file. */
async function documents(files: ReadonlyMap<string, string>): Promise<string> {
  const { readResources } = await import('../../../function/resource/read-resources.ts');
  const texts = readResources(files).resources.map(({ text = '' }) => {
    const alone = text.replace(/^\ufeff/, '').replace(/^---[^\S\n]*\r?\n/, '');
    return alone.endsWith('\n') ? alone : `${alone}\n`;
  });
  return texts.join('---\n');
}
